package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// event is one server-sent event. Its data aliases the reader's buffer and is valid until
// the next event is read.
type event struct {
	name string
	data []byte
}

// eventReader reads server-sent events (HTML standard 9.2), each limited in size. Reset
// prepares it for another stream.
type eventReader struct {
	r      *bufio.Reader
	skip   func(n int) error // called with the number of bytes that are not part of an event; may be nil
	data   []byte
	lastID string
	retry  time.Duration // the reconnect delay that the server requests; 0 if none
}

var errTooLarge = fmt.Errorf("a message over %d MiB", MaxMessage>>20)

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 4<<10)}
}

func (er *eventReader) reset(r io.Reader) {
	er.r.Reset(r)
	er.skip, er.lastID, er.retry = nil, "", 0
	if cap(er.data) > 64<<10 {
		er.data = nil // don't keep one large result in the pool
	}
}

// next returns the next event that has data, or io.EOF at the end of the stream. An event
// that is cut off by the end is dropped, as the standard requires, unless its data is
// complete: some servers omit the last blank line.
func (er *eventReader) next() (event, error) {
	var ev event
	er.data = er.data[:0]
	size, some := 0, false
	for {
		line, err := er.line(MaxMessage - size)
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			if errors.Is(err, io.EOF) && some && er.data[0] == '{' && json.Valid(er.data) {
				ev.data = er.data
				return ev, nil
			}
			return ev, err
		}
		size += len(line)
		line = bytes.TrimRight(bytes.TrimPrefix(line, byteOrderMark), "\r\n")
		if len(line) == 0 {
			if !some {
				if er.skip != nil {
					if err := er.skip(size + lineCost); err != nil {
						return ev, err
					}
				}
				ev, size = event{}, 0
				continue
			}
			ev.data = er.data
			return ev, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if some {
				er.data = append(er.data, '\n')
			}
			er.data = append(er.data, value...)
			some = some || len(value) > 0
		case "event":
			ev.name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				er.lastID = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				er.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line returns the next line including its end. It aliases the buffer if it fits, and is a
// copy otherwise.
func (er *eventReader) line(limit int) ([]byte, error) {
	line, err := er.r.ReadSlice('\n')
	if err == nil {
		if len(line) > limit {
			return nil, errTooLarge
		}
		return line, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err // at the end, the rest without a line break
	}
	long := append([]byte(nil), line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) > limit {
			return nil, errTooLarge
		}
		line, err = er.r.ReadSlice('\n')
		long = append(long, line...)
	}
	if len(long) > limit {
		return nil, errTooLarge
	}
	return long, err
}
