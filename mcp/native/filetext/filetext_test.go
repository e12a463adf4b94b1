package filetext

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"nize/store"
)

func TestMain(m *testing.M) {
	ChildMain()
	os.Exit(m.Run())
}

// pdfOf is a PDF whose pages have these contents. More goes into its trailer.
func pdfOf(more string, pages ...string) []byte {
	var b bytes.Buffer
	var at []int
	object := func(s string) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), s)
	}
	b.WriteString("%PDF-1.4\n")
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 4+2*i)
	}
	object("<</Type/Catalog/Pages 2 0 R>>")
	object(fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d      >>", kids, len(pages)))
	object("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/FirstChar 32/LastChar 33/Widths[278 278]/Encoding/WinAnsiEncoding>>")
	for i, text := range pages {
		object(fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>/XObject<</X %d 0 R>>>>>>", 5+2*i, 5))
		filter := "/Subtype/Form"                // a page may show the first page's content
		if strings.HasPrefix(text, "\x78\x01") { // of zlib at its quickest
			filter += "/Filter/FlateDecode"
		}
		object(fmt.Sprintf("<<"+filter+"/Length %d>>\nstream\n%s\nendstream", len(text), text))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, more, start)
	return b.Bytes()
}

// bomb is a PDF of which a page's content is that many times a text. A block of it is
// compressed once: to do so with all takes minutes under the race detector.
func bomb(text string, times int) []byte {
	var block bytes.Buffer
	w, err := flate.NewWriter(&block, flate.DefaultCompression)
	if err == nil {
		_, err = io.WriteString(w, strings.Repeat(text, 1<<16))
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		panic(err)
	}
	return pdfOf("", "\x78\x01"+strings.Repeat(block.String(), times/(1<<16)))
}

func docxOf(t testing.TB, files ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = io.WriteString(w, files[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const wordHead = `<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`

func paragraph(s string) string {
	return "<w:p><w:r><w:t>" + s + "</w:t></w:r></w:p>"
}

func TestRead(t *testing.T) {
	page := "BT /F1 12 Tf 72 700 Td (The \\(sea\\)) Tj 0 -14 Td [(ri) 20 (ses) -400 (twice)] TJ ET BT /F1 12 Tf 72 600 Td (a day) Tj ET"
	doc := docxOf(t, "word/document.xml", wordHead+`<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Tides</w:t></w:r></w:p>`+
		`<w:p><w:r><w:t xml:space="preserve">The sea </w:t><w:tab/><w:t>rises &amp; falls</w:t><w:br/><w:delText>gone</w:delText></w:r></w:p>`+
		`<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>one</w:t></w:r></w:p>`+
		`<w:tbl><w:tr><w:tc>`+paragraph("a")+paragraph("b")+`</w:tc><w:tc>`+paragraph("c")+`</w:tc></w:tr></w:tbl>`+paragraph("蓝鲸")+`</w:body></w:document>`)
	for _, c := range []struct {
		name, data, kind, want string
	}{
		{"a.txt", "hello\r\nworld", "text/plain", "hello\nworld"},
		{"a.md", "# Hi", "text/markdown", "# Hi"},
		{"a.csv", "a,b", "text/csv", "a,b"},
		{"a.JSON", `{"a":1}`, "application/json", `{"a":1}`},
		{"a.html", "<title>T</title><p>x <b>y</b><script>z</script>", "text/html", "# T\n\nx **y**"},
		{"page", "<!doctype html><p>x", "text/html", "x"},
		{"wide.txt", "\xff\xfeh\x00i\x00", "text/plain", "hi"},
		{"a.pdf", string(pdfOf("", page, "BT /F1 9 Tf (page two) Tj ET")), typePDF, "The (sea)\nrises twice\n\na day\fpage two"},
		{"a.docx", string(doc), typeDOCX, "## Tides\n\nThe sea \trises & falls\n\n\n- one\n\n| a b | c |\n\n蓝鲸\n\n"},
	} {
		got, err := Read(t.Context(), c.name, []byte(c.data), 1<<20)
		if err != nil || got.Type != c.kind || got.Text != c.want {
			t.Errorf("%s: %s %q, %v; want %q", c.name, got.Type, got.Text, err, c.want)
		}
	}
}

// TestUnreadable: what can't be read is said, and does no harm.
func TestUnreadable(t *testing.T) {
	word := func(xml string) []byte { return docxOf(t, "word/document.xml", wordHead+xml) }
	locked := "/ID[(0123456789abcdef)(0123456789abcdef)]/Encrypt<</Filter/Standard/V 1/R 2/Length 40/P -1/O(" + strings.Repeat("o", 32) + ")/U(" + strings.Repeat("u", 32) + ")>>"
	loop := bytes.Replace(pdfOf("", "x"), []byte("Kids[4 0 R ]/Count 1"), []byte("Kids[2 0 R ]/Count 9"), 1)
	type file struct {
		data []byte
		want string
	}
	all := func(t *testing.T, files map[string]file) {
		for name, c := range files {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				got, err := Read(t.Context(), name, c.data, 1<<16)
				if !errors.Is(err, store.ErrInvalid) || !strings.HasPrefix(err.Error(), "it cannot be read: ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%.60q, %v; want %q", got.Text, err, c.want)
				}
			})
		}
	}
	t.Run("files", func(t *testing.T) {
		all(t, map[string]file{
			"a.bin":      {[]byte("a\x00b"), "it is neither text in UTF-8 or UTF-16 nor PDF or DOCX"},
			"latin.txt":  {[]byte("caf\xe9"), "it is neither text"},
			"a.rtf":      {[]byte(`{\rtf1 x}`), "it is neither text"},
			"empty.txt":  {[]byte(" \n"), "there is no text in it"},
			"scan.pdf":   {pdfOf("", "q 100 0 0 100 0 0 cm /Im1 Do Q"), "the PDF has no text, as scanned pages have none"},
			"locked.pdf": {pdfOf(locked, "x"), "the PDF asks for a password"},
			"cut.pdf":    {pdfOf("", "x")[:80], "the PDF is damaged"},
			"many.pdf":   {bytes.Replace(pdfOf("", "x"), []byte("/Count 1      "), []byte("/Count 9999999"), 1), "more than 5,000 pages"},
			"long.pdf":   {bomb("BT /F1 9 Tf (aaaaaaaa) Tj ET\n", 1<<17), "it has more than 65536 bytes of text"},
			"a.zip":      {docxOf(t, "x", "y"), "it is a ZIP archive, and not DOCX"},
			"cut.docx":   {word("<w:p>")[:60], "it is damaged"},
			"open.docx":  {word("<w:p><w:t>x"), "it is damaged"},
			"empty.docx": {word("</w:body></w:document>"), "there is no text in it"},
			"long.docx":  {word(strings.Repeat(paragraph("aaaaaaaaaaaaaaaa"), 1<<13)), "it has more than 65536 bytes of text"},
		})
	})
	childTime = time.Second
	t.Cleanup(func() { childTime = 20 * time.Second })
	t.Run("bombs", func(t *testing.T) {
		all(t, map[string]file{
			"loop.pdf":     {loop, ""},
			"forms.pdf":    {pdfOf("", "/X Do /X Do"), "seconds or 512 MiB"},
			"endless.pdf":  {bomb("q Q ", 1<<26), "seconds or 512 MiB"},
			"memory.pdf":   {bomb("(aaaaaaaaaaaaaaa", 1<<24), "seconds or 512 MiB"},
			"deep.pdf":     {bomb("[", 1<<24), "it "},
			"bomb.docx":    {word("<w:p>" + strings.Repeat(" ", 65<<20)), "it "},
			"one-tag.docx": {word("<w:t>" + strings.Repeat("a", 65<<20)), "it "},
		})
	})
}

// TestProducers reads what programs that people use have made of the same text.
func TestProducers(t *testing.T) {
	for name, want := range map[string]string{
		"chromium": "“waffles”.\n\n大蓝鲸\n\nHalf seen.\fA walrus.", "cairo": "“waffles”.\n\n大蓝鲸\n\nHalf seen.\fA walrus.",
		"libreoffice": "“waffles”.\n\nHalf seen.\n\n大蓝鲸\fA walrus.",
		"pdftex":      "“waffles” — all α.\fA walrus.", "ghostscript": "“waffles” — all α.\fA walrus.",
	} {
		f, err := os.Open("testdata/pdf/" + name + ".pdf.gz")
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(z)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), name, data, 1<<20)
		if want = "The sea rises twice a day: efficient " + want; err != nil || got.Text != want {
			t.Errorf("%s: %q, %v; want %q", name, got.Text, err, want)
		}
	}
}

func TestPDFLexer(t *testing.T) {
	l := newPDFLexer(strings.NewReader("% (no\n-.5 +3/A#20b(a\\)(b)\\\n\\101\\53)<4a4>[1(x)[/Y]]<</a<</b 1>>>>BI /W 1 ID \x00EI(\xffEI q\nEI Q ) TJ"))
	var got []any
	for {
		token, ok := l.next()
		if !ok {
			break
		}
		got = append(got, token)
	}
	want := []any{-.5, 3., pdfName("A b"), "a)(b)A+", "J@", []any{1., "x", []any{pdfName("Y")}}, nil,
		pdfOperator("BI"), pdfName("W"), 1., pdfOperator("ID"), pdfOperator("Q"), pdfOperator("TJ")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, want %#v", got, want)
	}
}

// TestFonts: which character a code is, where a table, an encoding or nothing says so.
func TestFonts(t *testing.T) {
	f := &pdfFont{composite: true, texts: map[int]string{}}
	f.readTable(newPDFLexer(strings.NewReader("/CIDInit /ProcSet findresource begin 1 begincodespacerange <0000><ffff> endcodespacerange " +
		"2 beginbfchar <0003><0020> <0004><d83dde00> endbfchar 3 beginbfrange <0010><0012><0061> <0020><0021>[<00660069><2f24>] <00fe><0101><00fe> endbfrange")))
	if got, _, codes, _ := f.read("\x00\x10\x00\x12\x00\x03\x00\x04\x00\x20\x00\x21\x01\x01\x77\x77"); got != "ac 😀fi大ā\ufffd" || codes != 8 {
		t.Errorf("%q, %v codes", got, codes)
	}
	for in, want := range map[string]string{"a": "a", "quotedblleft": "“", "uni0416": "Ж", "u1F600": "😀", "g23": "", "uniD800": "", "space": " "} {
		if got := glyph(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(true, pdfOf("", "BT /F1 12 Tf (x) Tj [(a) -900 (b)] TJ ET"))
	f.Add(true, pdfOf("", "/X Do", "BI ID \x00 EI BT /F1 12 Tf <</a 1>> (x) ' ET"))
	f.Add(false, docxOf(f, "word/document.xml", wordHead+paragraph("x")+"</w:body></w:document>"))
	f.Fuzz(func(t *testing.T, isPDF bool, data []byte) {
		kind := typeDOCX
		if isPDF {
			kind = typePDF
		}
		if text, why := extract(kind, data, 1<<16); len(text) > 1<<18 || strings.ContainsRune(why, '\n') {
			t.Errorf("%d bytes, %q", len(text), why)
		}
	})
}
