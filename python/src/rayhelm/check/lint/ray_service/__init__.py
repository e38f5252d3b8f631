"""Check a RayService that rayhelm did not render: what Ray and vLLM refuse, and pods that Ray never schedules."""
