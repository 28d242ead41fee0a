"""From video to features, clean or corrupted: what one knock does not touch is not computed again."""
