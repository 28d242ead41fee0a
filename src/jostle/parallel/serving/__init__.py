"""Model servers: few processes hold the model, many workers submit frames through shared memory."""
