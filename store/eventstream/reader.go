package eventstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// ErrTooLarge is returned for an event over a [Reader]'s limit.
var ErrTooLarge = errors.New("the event is too large")

// byteOrderMark may precede the first event.
var byteOrderMark = []byte("\ufeff")

// Reader reads the events of a stream.
type Reader struct {
	r     *bufio.Reader
	most  int
	begun bool // the first line was read
	data  []byte
}

// NewReader returns a Reader whose events have at most the given number of bytes.
func NewReader(r io.Reader, most int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 4<<10), most: most}
}

// Next returns the next event that has data, or io.EOF at the end of the stream. Data is
// valid until the next call. ID and Retry are set if the event itself has them. An event
// that is cut off by the end is dropped, as the standard requires.
func (r *Reader) Next() (e Event, err error) {
	r.data = r.data[:0]
	size, some := 0, false
	for {
		line, err := r.line(r.most - size)
		if err != nil {
			return Event{}, err
		}
		size += len(line)
		if !r.begun {
			line, r.begun = bytes.TrimPrefix(line, byteOrderMark), true
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) > 0:
			some = e.parse(line, &r.data, some)
		case some:
			e.Data = r.data
			return e, nil
		default:
			e, size = Event{}, 0
		}
	}
}

// line returns the next line including its end. It may alias the buffer.
func (r *Reader) line(most int) (line []byte, err error) {
	for {
		part, err := r.r.ReadSlice('\n')
		switch {
		case len(line)+len(part) > most:
			return nil, fmt.Errorf("%w: over %d bytes", ErrTooLarge, r.most)
		case err == nil && line == nil:
			return part, nil
		case err == nil:
			return append(line, part...), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		line = append(line, part...)
	}
}

// Data returns the data of one event.
func Data(event []byte) []byte {
	var e Event
	var data []byte
	some := false
	for line := range bytes.Lines(event) {
		some = e.parse(bytes.TrimRight(line, "\r\n"), &data, some)
	}
	return data
}

// parse reads one line of an event. some reports whether there is data.
func (e *Event) parse(line []byte, data *[]byte, some bool) bool {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		if some {
			*data = append(*data, '\n')
		}
		*data = append(*data, value...)
		return true
	case "event":
		e.Name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.ID = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.Retry = time.Duration(ms) * time.Millisecond
		}
	}
	return some
}
