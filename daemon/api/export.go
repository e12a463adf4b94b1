package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"time"

	"nize/store"
)

// An export of the audit trail is one event in a line of JSON, oldest first, and a last
// line
//
//	{"export":{…},"key":"…","signature":"…"}
//
// whose export is an [Export]. The signature is Ed25519, by a key that belongs to the audit
// trail, over [exportContext] and the exact bytes of export. A verifier that has the public
// key (nizectl audit verify prints it) can therefore prove without a daemon that no line
// was changed, added or omitted since. Export.Verified records that the chain itself was
// valid; checking that needs the daemon's secret key.
const (
	exportContext = "nize audit export 1\n"
	// maxEventLine bounds one line: an event's data is limited to much less.
	maxEventLine = 1 << 20
)

// Export describes the contents of an export.
type Export struct {
	At     time.Time         `json:"at"`
	Filter map[string]string `json:"filter,omitempty"` // the filter that was requested; nil is the whole trail
	Events int               `json:"events"`
	First  uint64            `json:"first"` // sequence numbers of the first and last event; 0 if there is none
	Last   uint64            `json:"last"`
	Head   uint64            `json:"head"`   // newest event of the trail at that time
	Chain  string            `json:"chain"`  // and its chain value
	SHA256 string            `json:"sha256"` // of all preceding lines
}

type exportEnd struct {
	Export    json.RawMessage `json:"export"`
	Key       string          `json:"key"`
	Signature string          `json:"signature"`
}

// SignFunc signs with the key of the audit trail and returns the public key too.
type SignFunc func(message []byte) (signature []byte, key ed25519.PublicKey)

// Line returns the last line of an export.
func (e Export) Line(sign SignFunc) ([]byte, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("ending the export: %w", err)
	}
	signature, key := sign(append([]byte(exportContext), raw...))
	line, err := json.Marshal(exportEnd{raw, hex.EncodeToString(key), hex.EncodeToString(signature)})
	if err != nil {
		return nil, fmt.Errorf("ending the export: %w", err)
	}
	return append(line, '\n'), nil
}

// Exported is an export that was read to its end and matches its own signature.
type Exported struct {
	Export
	Key string `json:"key"` // hex; the reader must check that it is the expected one
}

// ErrExport is returned if an export is not what was written.
var ErrExport = errors.New("the export failed verification")

// ReadExport checks an export and copies it to w.
func ReadExport(r io.Reader, w io.Writer) (Exported, error) {
	x := exportReader{sum: sha256.New(), w: w}
	in := bufio.NewReaderSize(r, maxEventLine)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return x.out, fmt.Errorf("%w: line %d is over %d bytes", ErrExport, x.lines+1, maxEventLine)
		case err == io.EOF && len(line) == 0:
			if x.out.Key == "" {
				return x.out, fmt.Errorf("%w: its last line is missing after %d events", ErrExport, x.lines)
			}
			return x.out, nil
		case err == io.EOF:
			return x.out, fmt.Errorf("%w: line %d is cut off", ErrExport, x.lines+1)
		case err != nil:
			return x.out, fmt.Errorf("reading the export: %w", err)
		}
		if len(line) == 1 {
			continue // keep-alive
		}
		if err := x.line(line); err != nil {
			return x.out, err
		}
	}
}

type exportReader struct {
	out         Exported
	w           io.Writer
	sum         hash.Hash
	lines       int
	first, last uint64
}

func (x *exportReader) line(line []byte) error {
	switch {
	case bytes.HasPrefix(line, []byte(`{"error":{`)):
		var f Failure
		if err := json.Unmarshal(line, &f); err == nil && f.Error != nil && f.Error.Code != "" {
			return f.Error
		}
	case x.out.Key != "":
		return fmt.Errorf("%w: something follows its last line", ErrExport)
	case bytes.HasPrefix(line, []byte(`{"export":`)):
		if err := x.end(line); err != nil {
			return err
		}
		return x.copy(line)
	}
	seq, ok := seqOf(line)
	if !ok || seq <= x.last {
		return fmt.Errorf("%w: line %d is no event, or not in its place", ErrExport, x.lines+1)
	}
	if x.lines == 0 {
		x.first = seq
	}
	x.lines, x.last = x.lines+1, seq
	x.sum.Write(line)
	return x.copy(line)
}

func (x *exportReader) copy(line []byte) error {
	if _, err := x.w.Write(line); err != nil {
		return fmt.Errorf("writing the export: %w", err)
	}
	return nil
}

// seqOf returns the sequence number at the start of a line.
func seqOf(line []byte) (uint64, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	digits, _, comma := bytes.Cut(rest, []byte(","))
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	return seq, ok && comma && err == nil
}

// end checks the last line against all preceding lines.
func (x *exportReader) end(line []byte) error {
	var end exportEnd
	if err := json.Unmarshal(line, &end); err != nil {
		return fmt.Errorf("%w: its last line: %w", ErrExport, err)
	}
	if err := json.Unmarshal(end.Export, &x.out.Export); err != nil {
		return fmt.Errorf("%w: its last line: %w", ErrExport, err)
	}
	key, err1 := hex.DecodeString(end.Key)
	signature, err2 := hex.DecodeString(end.Signature)
	if err1 != nil || err2 != nil || len(key) != ed25519.PublicKeySize ||
		!ed25519.Verify(key, append([]byte(exportContext), end.Export...), signature) {
		return fmt.Errorf("%w: its signature is wrong", ErrExport)
	}
	e := x.out.Export
	whole := len(e.Filter) > 0 || e.Events == 0 || e.Last-e.First == uint64(e.Events)-1
	if e.Events != x.lines || e.First != x.first || e.Last != x.last || !whole || e.SHA256 != hex.EncodeToString(x.sum.Sum(nil)) {
		return fmt.Errorf("%w: it was signed for other lines than these %d", ErrExport, x.lines)
	}
	x.out.Key = end.Key
	return nil
}

// ExportAudit yields the selected events as an export, all of them unless Limit is set;
// [SaveAudit] checks it.
var ExportAudit = Stream[AuditRequest, Encoded]{"GET", "/v1/audit/export", true, "copy the audit trail, signed"}

// SaveAudit writes an export to w. It returns an error if the received bytes differ from
// what the daemon signed.
func SaveAudit(ctx context.Context, c *Client, req AuditRequest, w io.Writer) (Exported, error) {
	f, err := Download[AuditRequest](ExportAudit).Call(ctx, c, req)
	if err != nil {
		return Exported{}, err
	}
	defer f.Close()
	from := &reader{from: f}
	out, err := ReadExport(from, w)
	if from.err != nil {
		return out, from.err
	}
	return out, err
}

// GetAuditKey returns the key that signs exports.
var GetAuditKey = Op[Empty, AuditKey]{"GET", "/v1/audit/key", true, "show the key that signs exports"}

// AuditKey is the public key of exports, in hex.
type AuditKey struct {
	ExportKey string `json:"export_key"`
}

// HeldSince reports whether the trail still has the event that was its newest when an
// export was made; pruned is true if retention has deleted it since.
func HeldSince(ctx context.Context, c *Client, e Export) (held, pruned bool, err error) {
	if e.Head == 0 {
		return true, false, nil
	}
	var at store.Event
	for ev, err := range ReadAudit.Call(ctx, c, AuditRequest{Before: e.Head + 1, Limit: 1}) {
		if err != nil {
			return false, false, err
		}
		at = ev
	}
	if at.Seq != e.Head {
		return false, at.Seq == 0, nil
	}
	return at.Chain == e.Chain, false, nil
}
