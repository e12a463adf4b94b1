package filetext

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

const (
	maxPDFPages = 5000
	maxPDFDepth = 32 // of page trees and nested forms
)

// readPDF reads the text of a PDF, page by page. The library finds the objects in the file;
// the content of a page is read here (pdflex.go, pdffont.go), because the library's own
// readers skip the forms in which Chromium and Cairo put a whole page, guess a font's
// characters, and fail on inline images.
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
	d := &pdfFile{out: out, fonts: map[string]*pdfFont{}}
	d.readPages(r.Trailer().Key("Root").Key("Pages"), pdf.Value{}, 0)
	switch text := out.String(); {
	case d.pages > maxPDFPages:
		return "the PDF has more than 5,000 pages"
	case strings.TrimSpace(text) == "":
		return "the PDF has no text, as scanned pages have none"
	case unmapped(text):
		return "the fonts of the PDF do not say which characters they show"
	}
	return ""
}

// pdfFile is a file whose pages are read.
type pdfFile struct {
	out   *output
	pages int
	fonts map[string]*pdfFont // by their representation in the file
}

// readPages reads a node of the page tree. Pages inherit its resources.
func (d *pdfFile) readPages(node, resources pdf.Value, depth int) {
	if own := node.Key("Resources"); own.Kind() == pdf.Dict {
		resources = own
	}
	if kids := node.Key("Kids"); kids.Kind() == pdf.Array {
		for i := 0; i < kids.Len() && depth < maxPDFDepth && d.pages <= maxPDFPages; i++ {
			d.readPages(kids.Index(i), resources, depth+1)
		}
		return
	}
	if node.Kind() != pdf.Dict {
		return
	}
	if d.pages++; d.pages > 1 {
		d.out.add("\f")
	}
	p := &pdfPage{pdfFile: d, pdfState: pdfState{ctm: identity, line: identity, text: identity, scale: 1}}
	contents := node.Key("Contents")
	streams := []io.Reader{contents.Reader()}
	for i := range contents.Len() { // an array, whose streams form one content
		streams = append(streams, contents.Index(i).Reader(), strings.NewReader("\n"))
	}
	if contents.Kind() == pdf.Array {
		streams = streams[1:]
	}
	p.read(io.MultiReader(streams...), resources, 0)
}

// pdfPage reads a page. A PDF contains the positions of characters, but no words or lines:
// if the next character is on another line, or farther away than a character is wide, a
// line or a word has ended.
type pdfPage struct {
	*pdfFile
	pdfState
	saved []pdfState

	endX, endY float64 // end position of the last character
	begun      bool
}

// pdfState is the state that q and Q save, and the text matrices.
type pdfState struct {
	ctm, line, text          matrix
	size, spacing, wordSpace float64
	scale, leading           float64
	font                     *pdfFont
}

// matrix holds the values a b c d e f of a PDF matrix.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

func (m matrix) mul(n matrix) matrix {
	return matrix{m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3], m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5]}
}

// read executes the operators of a page or form, which refer to names in its resources.
func (p *pdfPage) read(content io.Reader, resources pdf.Value, depth int) {
	l := newPDFLexer(content)
	var args []any
	for {
		token, ok := l.next()
		if !ok {
			return
		}
		op, ok := token.(pdfOperator)
		switch {
		case !ok && len(args) < 1000:
			args = append(args, token)
			continue
		case !ok:
			continue
		case op == "Do" && depth < maxPDFDepth:
			p.showForm(resources.Key("XObject").Key(name(args)), resources, depth)
		case op == "Tf" && len(args) == 2:
			p.font = p.findFont(resources.Key("Font").Key(name(args)))
			p.size = numbers(args[1:], 1)[0]
		default:
			p.do(op, args)
		}
		args = args[:0]
	}
}

// showForm shows a form: content with its own resources and position, which producers use
// for transparent groups and for whole pages.
func (p *pdfPage) showForm(form, resources pdf.Value, depth int) {
	if form.Key("Subtype").Name() != "Form" {
		return
	}
	if own := form.Key("Resources"); own.Kind() == pdf.Dict {
		resources = own
	}
	state, saved := p.pdfState, p.saved
	p.saved = nil
	if m := form.Key("Matrix"); m.Len() == 6 {
		var at matrix
		for i := range at {
			at[i] = m.Index(i).Float64()
		}
		p.ctm = at.mul(p.ctm)
	}
	p.read(form.Reader(), resources, depth+1)
	p.pdfState, p.saved = state, saved
}

func name(args []any) string {
	if len(args) > 0 {
		if n, ok := args[0].(pdfName); ok {
			return string(n)
		}
	}
	return ""
}

func numbers(args []any, n int) []float64 {
	list := make([]float64, n)
	for i := range min(n, len(args)) {
		list[i], _ = args[i].(float64)
	}
	return list
}

func (p *pdfPage) move(x, y float64) {
	p.line = matrix{1, 0, 0, 1, x, y}.mul(p.line)
	p.text = p.line
}

func (p *pdfPage) do(op pdfOperator, args []any) {
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
			list, _ := args[0].([]any)
			p.showAll(list)
		}
	}
}

// showAll shows runs of characters, and moves by the numbers between them.
func (p *pdfPage) showAll(args []any) {
	for _, v := range args {
		switch v := v.(type) {
		case string:
			p.show(v)
		case float64:
			p.advance(-v / 1000 * p.size * p.scale)
		}
	}
}

func (p *pdfPage) advance(x float64) { p.text = matrix{1, 0, 0, 1, x, 0}.mul(p.text) }

// show writes a run of characters at the current text position.
func (p *pdfPage) show(raw string) {
	if p.font == nil || raw == "" {
		return
	}
	text, width, codes, spaces := p.font.read(raw)
	at := p.text.mul(p.ctm)
	size := math.Abs(p.size * max(math.Abs(at[3]), math.Abs(at[1])))
	if p.begun && size > 0 {
		switch gap := (at[4] - p.endX) / size; {
		case math.Abs(at[5]-p.endY) > size*.4:
			p.out.add("\n")
			if math.Abs(at[5]-p.endY) > size*2 {
				p.out.add("\n") // a paragraph
			}
		case (gap > .1 || gap < -1) && !strings.HasPrefix(text, " ") && !strings.HasSuffix(p.out.String(), " "):
			p.out.add(" ")
		}
	}
	p.out.add(text)
	p.advance((width*p.size + p.spacing*codes + p.wordSpace*spaces) * p.scale)
	end := p.text.mul(p.ctm)
	p.endX, p.endY, p.begun = end[4], end[5], true
}
