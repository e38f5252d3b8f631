"""Types that the values models of several charts share."""
