"""Charts as SVG: the drawing and its shapes, and one function a chart."""
