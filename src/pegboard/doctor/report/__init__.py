"""Proof: what each applied change brought, from what sessions were like before it and after. Pure, shells aside."""
