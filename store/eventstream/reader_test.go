package eventstream

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readAll returns the events of a stream, which end with an error.
func readAll(r io.Reader, most int) (all []Event, err error) {
	in := NewReader(r, most)
	for {
		e, err := in.Next()
		if err != nil {
			return all, err
		}
		e.Data = append([]byte{}, e.Data...)
		all = append(all, e)
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for name, c := range map[string]struct {
		stream string
		want   []Event
		err    error
	}{
		"nothing":                  {"", nil, io.EOF},
		"one":                      {"data: a\n\n", []Event{{Data: []byte("a")}}, io.EOF},
		"all fields":               {"id: 5\nretry: 20\nevent: message\ndata: a\ndata:b\n\n", []Event{{ID: "5", Retry: 20 * time.Millisecond, Name: "message", Data: []byte("a\nb")}}, io.EOF},
		"carriage returns":         {"event: e\r\ndata: a\r\n\r\n", []Event{{Name: "e", Data: []byte("a")}}, io.EOF},
		"a byte order mark":        {"\ufeffdata: a\n\n", []Event{{Data: []byte("a")}}, io.EOF},
		"comments, unknown fields": {": still here\n\nnonsense\nother: x\ndata: a\n\n", []Event{{Data: []byte("a")}}, io.EOF},
		"no data":                  {"event: e\nid: 4\n\ndata: a\n\n", []Event{{Data: []byte("a")}}, io.EOF},
		"empty data":               {"data:\n\ndata\n\n", []Event{{Data: []byte{}}, {Data: []byte{}}}, io.EOF},
		"only the first blank":     {"data:  a\n\n", []Event{{Data: []byte(" a")}}, io.EOF},
		"cut off":                  {"data: a\n\ndata: b\n", []Event{{Data: []byte("a")}}, io.EOF},
		"cut off in a line":        {"data: a\n\ndata: b", []Event{{Data: []byte("a")}}, io.EOF},
		"an invalid id, retry":     {"id: a\x00b\nretry: soon\ndata: a\n\n", []Event{{Data: []byte("a")}}, io.EOF},
		"a long line":              {"data: " + long + "\n\ndata: a\n\n", []Event{{Data: []byte(long)}, {Data: []byte("a")}}, io.EOF},
		"too long a line":          {"data: a\n\ndata: " + long + long + "\n\n", []Event{{Data: []byte("a")}}, ErrTooLarge},
		"too many lines":           {strings.Repeat("data: "+long[:1000]+"\n", 25) + "\n", nil, ErrTooLarge},
		"many events":              {strings.Repeat("data: "+long[:5000]+"\n\n", 2) + strings.Repeat(": x\n\n", 10_000) + "data: a\n\n", []Event{{Data: []byte(long[:5000])}, {Data: []byte(long[:5000])}, {Data: []byte("a")}}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.stream), iotest.OneByteReader(strings.NewReader(c.stream))} {
				got, err := readAll(in, 20_000)
				if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
					t.Errorf("%v, %s", err, diff)
				}
			}
		})
	}
}

func TestData(t *testing.T) {
	for event, want := range map[string]string{
		"event: message\r\ndata: {\"a\":\r\ndata:1}\r\n\r\n": "{\"a\":\n1}",
		"data:  x\n\n":    " x",
		"event: ping\n\n": "",
		"data: \n\n":      "",
	} {
		if got := string(Data([]byte(event))); got != want {
			t.Errorf("%q: %q, want %q", event, got, want)
		}
	}
}

// FuzzReader: what is written is read again, and nothing that is read exceeds the limit.
func FuzzReader(f *testing.F) {
	f.Add([]byte("data: a\n\n"), "7", "message")
	f.Add([]byte("a\nb\r\n\nc\x00"), "", "")
	f.Fuzz(func(t *testing.T, data []byte, id, name string) {
		if got, err := readAll(strings.NewReader(string(data)), 1000); err == nil {
			t.Errorf("%v without an error", got)
		} else {
			for _, e := range got {
				if len(e.Data) > 1000 {
					t.Errorf("%d bytes", len(e.Data))
				}
			}
		}
		if strings.ContainsAny(id+name, "\r\n\x00\ufeff") || strings.HasPrefix(id, " ") || strings.HasPrefix(name, " ") || strings.Contains(string(data), "\r") {
			return // they can't be sent
		}
		want := Event{ID: id, Name: name, Data: append([]byte{}, data...)}
		got, err := readAll(strings.NewReader(string(want.Append(nil))), 1<<20)
		if diff := cmp.Diff([]Event{want}, got); diff != "" || err != io.EOF {
			t.Errorf("%v, %s", err, diff)
		}
	})
}
