"""The network extends a phrase table: it proposes targets, and whole lines are made of them."""
