package api

import (
	"context"
	"errors"
)

// The operations on the database's records.
var (
	CompactDatabase = Stream[CompactRequest, CompactLine]{"POST", "/v1/database/compact", true, "rewrite older records and give freed space back"}
	ListBuckets     = Op[Empty, List[Bucket]]{"GET", "/v1/database/layout", true, "list the buckets of the database"}
	ShowRecord      = Op[ShowRecordRequest, Record]{"GET", "/v1/database/records/{bucket}/{key}", true, "show a stored record"}
)

// CompactRequest asks for the whole of it, or for what the database does by itself.
type CompactRequest struct {
	// Records also raises the schema of a database that an earlier version made, which
	// that version can't open any more.
	Records bool `json:"records"`
}

// CompactLine is how far it is, and, in the last line, the result.
type CompactLine struct {
	Rewritten int        `json:"rewritten"` // records so far
	Result    *Compacted `json:"result,omitempty"`
}

// Compacted is what became of the database.
type Compacted struct {
	Records int   `json:"records"` // that were rewritten
	Damaged int   `json:"damaged"` // that can't be read, and stay as they are
	Raised  bool  `json:"raised"`  // earlier versions can't open the database any more
	Before  int64 `json:"before"`  // bytes of the file
	After   int64 `json:"after"`
	// Server is set if the database is on a server, whose own VACUUM gives space back.
	Server string `json:"server,omitempty"`
}

// Compact compacts the database and returns the result. progress, if set, gets the number
// of rewritten records.
func Compact(ctx context.Context, c *Client, req CompactRequest, progress func(rewritten int)) (Compacted, error) {
	for line, err := range CompactDatabase.Call(ctx, c, req) {
		switch {
		case err != nil:
			return Compacted{}, err
		case line.Result != nil:
			return *line.Result, nil
		case progress != nil:
			progress(line.Rewritten)
		}
	}
	return Compacted{}, brokenOff(errors.New("the compaction has no result"))
}

// Bucket describes a bucket of the database.
type Bucket struct {
	Name   string `json:"name"`
	Key    string `json:"key"` // the parts of a key; 0 is a zero byte
	Value  string `json:"value"`
	Sealed bool   `json:"sealed"` // every value is encrypted
}

// ShowRecordRequest names a record.
type ShowRecordRequest struct {
	Bucket string `path:"bucket" json:"-"`
	Key    string `path:"key" json:"-"` // an id, or a number
}

// Record is a stored record in readable form.
type Record struct {
	Bucket string        `json:"bucket"`
	Key    string        `json:"key"`
	Form   string        `json:"form"` // parts, compact or empty
	Size   int           `json:"size"` // bytes, as stored
	Fields []RecordField `json:"fields"`
}

// RecordField is one part of a record.
type RecordField struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Sealed is set for a part that is encrypted at rest. Text is then its size only.
	Sealed bool `json:"sealed,omitempty"`
}
