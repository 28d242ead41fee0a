"""Optional experiment trackers: TensorBoard, Weights & Biases, MLflow."""
