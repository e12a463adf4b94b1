package main

// bench is one run.
type bench struct {
	bin    string
	rounds int
	events int // of the audit trail
	only   string
	dir    string // for everything that this run writes
	table  table
}
