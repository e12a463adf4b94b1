package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// head is the record of a call, as JSON.
const head = `{"id":"01M8FKY2W5BM1EKQ6EZ8ZXFAAQ","server":"system-0","tool":"read_page","args":null,"digest":"18d0c385945cb557ccd5fabaad05ba3fe1746fea53fd76cc3fd61e634c45bef9","pin":"ff560d4635dbbefce74096e5645af80cfff49f23f240d85ad760c8235f5b8b67","hooks":[{"id":"audit"},{"id":"access-control"},{"id":"response-truncation"}],"by":"01M8FKXZQFS121BAHV4MA0DKKA","by_name":"root","surface":"mcp","token":"01M8FKY05ERCHWZG4GHSTHN5K0","read_only":true,"policy":"requester","by_meta":true,"state":"done","created":"2026-11-27T23:02:35.141271788Z","started":"2026-11-27T23:02:35.14128011Z","finished":"2026-11-27T23:02:35.142085199Z","owner":"01M8FKY02WX11R45SMP47VJ04T","runs_as":"no credential"}`

// texts are encoded in at most that many bytes; 0 is any number.
var texts = []struct {
	name, text, own string
	most            int
}{
	{"nothing", "", "", 2},
	{"a call", head, "01M8FKY2W5BM1EKQ6EZ8ZXFAAQ", 180},
	{"a call under another id", head, "c1", 0},
	{"an id", "01M8FKY2W5BM1EKQ6EZ8ZXFAAQ", "", 18},
	{"an id too large", "81M8FKY2W5BM1EKQ6EZ8ZXFAAQ", "", 0},
	{"ids of lower case", strings.ToLower("01M8FKY2W5BM1EKQ6EZ8ZXFAAQ"), "", 0},
	{"an odd number of hex digits", "0123456789abcdef0", "", 0},
	{"a long number", "123456789012345678901234567890", "", 0},
	{"times", `["2026-11-27T23:02:35Z","1969-11-27T23:02:35Z","2026-11-27T23:02:35.100Z","2026-02-30T23:02:35Z","2026-11-27T23:02:35+01:00","2500-01-01T00:00:00Z","0001-01-01T00:00:00Z"]`, "", 0},
	{"all bytes", func() string {
		var b []byte
		for i := range 256 {
			b = append(b, byte(i), byte(i), byte(255-i))
		}
		return string(b)
	}(), "", 0},
	{"a long text", strings.Repeat("words that come again and again, ", 100), "", 100},
	{"Chinese", `{"text":"什么时候"}`, "", 0},
}

func TestEncode(t *testing.T) {
	for _, c := range texts {
		short := Encode([]byte(c.text), c.own)
		if c.most > 0 && len(short) > c.most {
			t.Errorf("%s: %d bytes, want at most %d", c.name, len(short), c.most)
		}
		if len(short) > len(c.text)+1 {
			t.Errorf("%s: %d bytes of %d", c.name, len(short), len(c.text))
		}
		got, err := Decode(short, c.own)
		if err != nil || string(got) != c.text {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
		got, err = AppendText(nil, AppendWords(nil, []byte(c.text), c.own), c.own)
		if err != nil || string(got) != c.text {
			t.Errorf("%s, words alone: got %q, %v", c.name, got, err)
		}
	}
}

// TestRandom: what can't be made shorter grows by one byte.
func TestRandom(t *testing.T) {
	var b []byte
	for i := range 100 {
		sum := sha256.Sum256([]byte{byte(i)})
		b = append(b, sum[:]...)
	}
	short := Encode(b, "")
	got, err := Decode(short, "")
	if err != nil || !bytes.Equal(got, b) || len(short) != len(b)+1 {
		t.Errorf("%d bytes of %d, %v", len(short), len(b), err)
	}
}

func TestDamaged(t *testing.T) {
	for _, b := range [][]byte{
		nil, {9}, {kindWords, codeHex}, {kindWords, codeHex, 200, 1}, {kindWords, codeHex, 2, 1}, {kindWords, codeID, 1, 2},
		{kindWords, codeTime}, {kindWords, codeByte}, {kindWords, codeWord}, {kindWords, codeWord, 255}, {kindZstd, 1, 2, 3},
	} {
		if got, err := Decode(b, ""); err == nil {
			t.Errorf("%v gives %q", b, got)
		}
	}
}

// TestWordsStay: stored records name words by their place.
func TestWordsStay(t *testing.T) {
	if single := len(codes) - firstWord; len(words)-single > 256 {
		t.Fatalf("%d words, at most %d have a code", len(words), single+256)
	}
	seen := map[string]bool{}
	for _, w := range words {
		if w == "" || seen[w] {
			t.Errorf("the word %q is there twice, or empty", w)
		}
		seen[w] = true
	}
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	if got, want := hex.EncodeToString(sum[:8]), "ae4bada4ea34c6ba"; got != want {
		t.Errorf("the words changed: their sum is %s, not %s", got, want)
	}
}

func FuzzEncode(f *testing.F) {
	for _, c := range texts {
		f.Add([]byte(c.text), c.own)
	}
	f.Fuzz(func(t *testing.T, text []byte, own string) {
		got, err := Decode(Encode(text, own), own)
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, c := range texts {
		f.Add(Encode([]byte(c.text), c.own), c.own)
	}
	f.Fuzz(func(t *testing.T, short []byte, own string) {
		text, err := Decode(short, own)
		if err == nil && len(own) < 100 && len(short) > 0 && short[0] == kindWords && len(text) > 100*len(short) {
			t.Errorf("%d bytes give %d", len(short), len(text))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	own := store.NewID(time.Now())
	for b.Loop() {
		Encode([]byte(head), own)
	}
}

func BenchmarkDecode(b *testing.B) {
	short := Encode([]byte(head), "01M8FKY2W5BM1EKQ6EZ8ZXFAAQ")
	for b.Loop() {
		if _, err := Decode(short, "01M8FKY2W5BM1EKQ6EZ8ZXFAAQ"); err != nil {
			b.Fatal(err)
		}
	}
}
