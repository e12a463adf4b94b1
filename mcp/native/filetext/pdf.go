package filetext

import (
	"bytes"
	"errors"
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

const maxPDFPages = 5000

// readPDF reads the text of a PDF, page by page.
func readPDF(data []byte, out *output) (why string) {
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword):
		return "the PDF asks for a password"
	case err != nil && strings.Contains(err.Error(), "encrypt"):
		return "the PDF is encrypted in a way that is not known"
	case err != nil:
		return "the PDF is damaged"
	case r.NumPage() > maxPDFPages:
		return "the PDF has more than 5,000 pages"
	}
	for n := 1; n <= r.NumPage(); n++ {
		if n > 1 {
			out.add("\f")
		}
		p := pdfPage{page: r.Page(n), out: out}
		p.read()
	}
	switch text := out.String(); {
	case strings.TrimSpace(text) == "":
		return "the PDF has no text, as scanned pages have none"
	case unmapped(text):
		return "the fonts of the PDF do not say which characters they show"
	}
	return ""
}

// ligatures are letters that are one character in print.
var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl")

// pdfPage reads a page. A PDF says where characters stand, and neither words nor
// lines: where the place of the next one is another line, or farther than a character
// is wide, a line or a word has ended. The library's own readers don't look at the
// places, or write a character too many after each run.
type pdfPage struct {
	page pdf.Page
	out  *output

	fonts map[string]*pdfFont
	font  *pdfFont
	pdfState
	saved []pdfState

	endX, endY float64 // where the last character ended
	begun      bool
}

// pdfState is what q and Q save, and the matrices of text.
type pdfState struct {
	ctm, line, text          matrix
	size, spacing, wordSpace float64
	scale, leading           float64
}

// matrix is a b c d e f of a PDF.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

func (m matrix) mul(n matrix) matrix {
	return matrix{m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3], m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5]}
}

func (p *pdfPage) read() {
	contents := p.page.V.Key("Contents")
	if contents.Kind() == pdf.Null {
		return
	}
	p.fonts = map[string]*pdfFont{}
	p.pdfState = pdfState{ctm: identity, line: identity, text: identity, scale: 1}
	pdf.Interpret(contents, func(stack *pdf.Stack, op string) {
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		p.do(op, args)
	})
}

func numbers(args []pdf.Value, n int) []float64 {
	list := make([]float64, n)
	for i := range min(n, len(args)) {
		list[i] = args[i].Float64()
	}
	return list
}

func (p *pdfPage) move(x, y float64) {
	p.line = matrix{1, 0, 0, 1, x, y}.mul(p.line)
	p.text = p.line
}

func (p *pdfPage) do(op string, args []pdf.Value) {
	switch op {
	case "q":
		if len(p.saved) < 1000 {
			p.saved = append(p.saved, p.pdfState)
		}
	case "Q":
		if n := len(p.saved); n > 0 {
			p.pdfState, p.saved = p.saved[n-1], p.saved[:n-1]
		}
	case "cm":
		p.ctm = matrix(numbers(args, 6)).mul(p.ctm)
	case "BT":
		p.line, p.text = identity, identity
	case "Tm":
		p.line = matrix(numbers(args, 6))
		p.text = p.line
	case "Td":
		at := numbers(args, 2)
		p.move(at[0], at[1])
	case "TD":
		at := numbers(args, 2)
		p.leading = -at[1]
		p.move(at[0], at[1])
	case "T*":
		p.move(0, -p.leading)
	case "TL":
		p.leading = numbers(args, 1)[0]
	case "Tc":
		p.spacing = numbers(args, 1)[0]
	case "Tw":
		p.wordSpace = numbers(args, 1)[0]
	case "Tz":
		p.scale = numbers(args, 1)[0] / 100
	case "Tf":
		if len(args) == 2 {
			p.setFont(args[0].Name())
			p.size = args[1].Float64()
		}
	case "Tj":
		p.showAll(args)
	case "'":
		p.move(0, -p.leading)
		p.showAll(args)
	case "\"":
		p.move(0, -p.leading)
		p.showAll(args[min(2, len(args)):])
	case "TJ":
		if len(args) == 1 {
			for i := range args[0].Len() {
				if v := args[0].Index(i); v.Kind() == pdf.String {
					p.show(v.RawString())
				} else {
					p.advance(-v.Float64() / 1000 * p.size * p.scale)
				}
			}
		}
	}
}

// pdfFont is a font as far as it says which characters there are and how wide, in
// thousandths of its size. Codes of a composite one have two bytes.
type pdfFont struct {
	enc       pdf.TextEncoding
	composite bool
	widths    map[int]float64
	other     float64
}

func newPDFFont(f pdf.Font) *pdfFont {
	out := &pdfFont{enc: f.Encoder(), composite: f.V.Key("Subtype").Name() == "Type0", widths: map[int]float64{}, other: 500}
	if !out.composite {
		for i, w := range f.Widths() {
			out.widths[f.FirstChar()+i] = w
		}
		return out
	}
	of := f.V.Key("DescendantFonts").Index(0)
	if out.other = 1000; of.Key("DW").Kind() != pdf.Null {
		out.other = of.Key("DW").Float64()
	}
	list := of.Key("W") // first [w w …]  or  first last w
	for i := 0; i+1 < list.Len(); {
		first := int(list.Index(i).Int64())
		if each := list.Index(i + 1); each.Kind() == pdf.Array {
			for n := range each.Len() {
				out.widths[first+n] = each.Index(n).Float64()
			}
			i += 2
			continue
		}
		for code := first; code <= min(int(list.Index(i+1).Int64()), first+1<<16); code++ {
			out.widths[code] = list.Index(i + 2).Float64()
		}
		i += 3
	}
	return out
}

// measure is how wide a run is, and how many codes and spaces it has.
func (f *pdfFont) measure(raw string) (width, codes, spaces float64) {
	step := 1
	if f.composite {
		step = 2
	}
	for i := 0; i+step <= len(raw); i += step {
		code := int(raw[i])
		if f.composite {
			code = code<<8 | int(raw[i+1])
		} else if code == ' ' {
			spaces++
		}
		w, ok := f.widths[code]
		if !ok {
			w = f.other
		}
		width += w
		codes++
	}
	return width / 1000, codes, spaces
}

func (p *pdfPage) setFont(name string) {
	if p.fonts[name] == nil {
		p.fonts[name] = newPDFFont(p.page.Font(name))
	}
	p.font = p.fonts[name]
}

func (p *pdfPage) showAll(args []pdf.Value) {
	for _, v := range args {
		p.show(v.RawString())
	}
}

func (p *pdfPage) advance(x float64) { p.text = matrix{1, 0, 0, 1, x, 0}.mul(p.text) }

// show writes a run of characters where the text is now.
func (p *pdfPage) show(raw string) {
	if p.font == nil || p.font.enc == nil || raw == "" {
		return
	}
	text := ligatures.Replace(p.font.enc.Decode(raw))
	at := p.text.mul(p.ctm)
	size := math.Abs(p.size * max(math.Abs(at[3]), math.Abs(at[1])))
	if p.begun && size > 0 {
		switch gap := (at[4] - p.endX) / size; {
		case math.Abs(at[5]-p.endY) > size*.4:
			p.out.add("\n")
			if math.Abs(at[5]-p.endY) > size*2 {
				p.out.add("\n") // a paragraph
			}
		case (gap > .15 || gap < -1) && !strings.HasPrefix(text, " ") && !strings.HasSuffix(p.out.String(), " "):
			p.out.add(" ")
		}
	}
	p.out.add(text)
	width, codes, spaces := p.font.measure(raw)
	p.advance((width*p.size + p.spacing*codes + p.wordSpace*spaces) * p.scale)
	end := p.text.mul(p.ctm)
	p.endX, p.endY, p.begun = end[4], end[5], true
}
