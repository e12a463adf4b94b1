package filetext

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

const maxXML = 64 << 20 // bytes of a document's XML: text is a small part of it

// readDOCX reads the paragraphs, lists and tables of a DOCX file as Markdown. The format is
// a ZIP archive of XML, which the standard library reads; the parts of [ECMA-376] that are
// not text (drawings, fields, deleted text) are left out.
//
// [ECMA-376]: https://ecma-international.org/publications-and-standards/standards/ecma-376/
func readDOCX(data []byte, out *output) (why string) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "it is damaged"
	}
	f, err := archive.Open("word/document.xml")
	if err != nil {
		return "it is a ZIP archive, and not DOCX"
	}
	defer f.Close()
	if err := readWord(xml.NewDecoder(io.LimitReader(f, maxXML)), out); err != nil {
		return "it is damaged"
	}
	return ""
}

// word is the state of a document's reader.
type word struct {
	out       *output
	paragraph strings.Builder
	prefix    string   // of a heading or a list item
	cells     []string // of the current row; nil outside of one
	tables    int      // nesting of tables
	skip      int      // depth below an element that is left out
}

func readWord(d *xml.Decoder, out *output) error {
	w := &word{out: out}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if w.skip > 0 || t.Name.Local == "Fallback" { // the same content again, for older programs
				w.skip++
				continue
			}
			w.start(t)
			if t.Name.Local == "t" {
				var text string
				if err := d.DecodeElement(&text, &t); err != nil {
					return err
				}
				w.write(text)
			}
		case xml.EndElement:
			if w.skip > 0 {
				w.skip--
				continue
			}
			w.end(t.Name.Local)
		}
	}
}

func (w *word) write(s string) {
	if w.out.Len()+w.paragraph.Len()+len(s) > w.out.most {
		panic(tooLong{})
	}
	w.paragraph.WriteString(s)
}

func (w *word) start(t xml.StartElement) {
	value := func(name string) string {
		for _, a := range t.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	switch t.Name.Local {
	case "tab":
		w.write("\t")
	case "br", "cr":
		if value("type") == "page" {
			w.write("\f")
		} else {
			w.write("\n")
		}
	case "pStyle":
		if level, ok := strings.CutPrefix(strings.ToLower(value("val")), "heading"); ok && len(level) == 1 && level >= "1" && level <= "6" {
			w.prefix = strings.Repeat("#", int(level[0]-'0')) + " "
		} else if strings.EqualFold(value("val"), "title") {
			w.prefix = "# "
		}
	case "numPr":
		if w.prefix == "" {
			w.prefix = "- "
		}
	case "tbl":
		w.tables++
	case "tr":
		if w.tables == 1 {
			w.cells = []string{}
		}
	}
}

func (w *word) end(name string) {
	switch name {
	case "p":
		if w.cells != nil { // paragraphs of a cell are joined on one line
			w.write(" ")
			return
		}
		if w.paragraph.Len() > 0 {
			w.out.add(w.prefix + w.paragraph.String() + "\n\n")
		}
		w.paragraph.Reset()
		w.prefix = ""
	case "tc":
		if w.tables == 1 {
			w.cells = append(w.cells, strings.Join(strings.Fields(w.paragraph.String()), " "))
			w.paragraph.Reset()
			w.prefix = ""
		}
	case "tr":
		if w.tables == 1 {
			w.out.add("| " + strings.Join(w.cells, " | ") + " |\n")
			w.cells = nil
		}
	case "tbl":
		if w.tables--; w.tables == 0 {
			w.out.add("\n")
		}
	}
}
