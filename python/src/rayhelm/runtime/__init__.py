"""What runs in Ray: the Serve autoscaling policy, stream errors, speech. It imports nothing of rayhelm."""
