package main

import (
	"fmt"
	"math"
)

// sample is a list of numbers, represented by sums.
type sample struct{ n, sum, squares float64 }

func (s *sample) add(x float64) {
	s.n++
	s.sum += x
	s.squares += x * x
}

func (s *sample) join(o sample) {
	s.n += o.n
	s.sum += o.sum
	s.squares += o.squares
}

func (s sample) mean() float64 {
	if s.n == 0 {
		return 0
	}
	return s.sum / s.n
}

// interval returns half the width of the mean's 95 % interval.
func (s sample) interval() float64 {
	if s.n < 2 {
		return 0
	}
	return 1.96 * math.Sqrt(max(0, s.squares/s.n-s.mean()*s.mean())/s.n)
}

// points formats the mean in points with its interval.
func (s sample) points() string {
	return fmt.Sprintf("%+.1f ± %.1f", 100*s.mean(), 100*s.interval())
}

// change is the effect of a change, request by request.
type change struct{ r1, r5 sample }

func (c *change) add(before, after score) {
	c.r1.add(after.R1 - before.R1)
	c.r5.add(after.R5 - before.R5)
}

func (c *change) join(o change) {
	c.r1.join(o.r1)
	c.r5.join(o.r5)
}

// String returns three cells of a table.
func (c change) String() string {
	return fmt.Sprintf("%.0f | %s | %s", c.r1.n, c.r1.points(), c.r5.points())
}
