"""What the values models of several charts share."""
