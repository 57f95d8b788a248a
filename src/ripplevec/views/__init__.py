"""What a vector is made of: views, their operators, starts and corrections."""
