// Package database opens the database: engine, schema, keys and the records over them.
//
// It opens an engine, migrates its schema, opens its keys, and puts the records of
// store/record and of the packages below it over a [commit.DB]. Backups, verification of
// copies, and key rotation are also here, since they need to know all of them.
//
// A [kv.Engine] stores keys and values in transactions. Package bolt below store/kv is the
// embedded engine, and checks and opens its file. This package uses only the interface.
package database
