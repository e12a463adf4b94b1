// Package database keeps everything in one database: it opens an engine, brings its
// schema up to date, opens its keys, and puts the nouns of store/record and of the
// packages below it over a [commit.DB]. Copies, verifying a copy, and the rotation of
// keys are here too, since they need to know all of them.
//
// Keys, values and transactions are a [kv.Engine]'s, of which package bolt below
// store/kv is the embedded one; its file is checked and opened there. What is
// here knows its interface alone.
package database
