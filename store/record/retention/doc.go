// Package retention prunes old records and erases conversations and people.
//
// It has no bucket of its own, and accesses those of all other packages.
package retention
