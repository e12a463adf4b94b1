package kv

// Bucket describes a bucket of the database: its name, and what a reader of the file finds in it.
type Bucket struct {
	Name  string
	Key   string // the parts of a key; 0 is a zero byte
	Value string
	// Sealed buckets contain only values stored by PutSealed. Rotating the keys reseals them,
	// and verifying a copy opens them.
	Sealed bool
}
