"""Charts as shapes, shown on pages as SVG and saved for papers: the drawing, its looks, and one function a chart."""
