package filetext

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/unicode/norm"

	"nize/mcp/native/page"
)

// unknown replaces a code without a known character.
const unknown = "\ufffd"

// pdfFont holds the characters of a font and their widths, relative to its size. Codes of a
// composite font have two bytes.
type pdfFont struct {
	composite bool
	utf16     bool           // its codes are UTF-16
	texts     map[int]string // from its ToUnicode table
	named     [256]string    // from the names of its characters, if it is not composite
	widths    map[int]float64
	other     float64
}

func (d *pdfFile) findFont(f pdf.Value) *pdfFont {
	if f.Kind() != pdf.Dict {
		return nil
	}
	key := f.String()
	if d.fonts[key] == nil {
		d.fonts[key] = newPDFFont(f)
	}
	return d.fonts[key]
}

func newPDFFont(f pdf.Value) *pdfFont {
	out := &pdfFont{composite: f.Key("Subtype").Name() == "Type0", texts: map[int]string{}, widths: map[int]float64{}, other: .5}
	if table := f.Key("ToUnicode"); table.Kind() == pdf.Stream {
		out.readTable(newPDFLexer(table.Reader()))
	}
	if !out.composite {
		unit := .001
		if m := f.Key("FontMatrix"); m.Len() == 6 { // for glyphs that are drawings
			unit = m.Index(0).Float64()
		}
		for i, widths := 0, f.Key("Widths"); i < widths.Len(); i++ {
			out.widths[int(f.Key("FirstChar").Int64())+i] = widths.Index(i).Float64() * unit
		}
		out.named = namesOf(f)
		return out
	}
	encoding := f.Key("Encoding").Name()
	out.utf16 = strings.Contains(encoding, "UCS2") || strings.Contains(encoding, "UTF16")
	of := f.Key("DescendantFonts").Index(0)
	if out.other = 1; of.Key("DW").Kind() != pdf.Null {
		out.other = of.Key("DW").Float64() / 1000
	}
	list := of.Key("W") // first [w w …]  or  first last w
	for i := 0; i+1 < list.Len(); {
		first := int(list.Index(i).Int64())
		if each := list.Index(i + 1); each.Kind() == pdf.Array {
			for n := range each.Len() {
				out.widths[first+n] = each.Index(n).Float64() / 1000
			}
			i += 2
			continue
		}
		for code := first; code <= min(int(list.Index(i+1).Int64()), first+1<<16); code++ {
			out.widths[code] = list.Index(i+2).Float64() / 1000
		}
		i += 3
	}
	return out
}

// read returns the text of a run, its width, and the number of its codes and spaces.
func (f *pdfFont) read(raw string) (text string, width, codes, spaces float64) {
	var b strings.Builder
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
		switch said, ok := f.texts[code]; {
		case ok:
			b.WriteString(said)
		case !f.composite:
			b.WriteString(f.named[raw[i]])
		case !f.utf16:
			b.WriteString(unknown)
		}
	}
	if f.utf16 && len(f.texts) == 0 {
		b.WriteString(fromUTF16(raw))
	}
	return plain(b.String()), width, codes, spaces
}

// plain replaces printed forms with the characters that people type: ligatures, and the
// radicals that Chromium's tables contain where a font draws ideographs.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0xfb00 && r <= 0xfb06 || r >= 0x2e80 && r <= 0x2fd5 || r >= 0xf900 && r <= 0xfaff {
			b.WriteString(norm.NFKC.String(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func fromUTF16(s string) string {
	var units []uint16
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}

// readTable reads a ToUnicode table, which maps codes to text.
func (f *pdfFont) readTable(l *pdfLexer) {
	code := func(v any) (n int) {
		s, _ := v.(string)
		for _, c := range []byte(s[max(0, len(s)-2):]) {
			n = n<<8 | int(c)
		}
		return n
	}
	put := func(n int, s string) {
		if len(s) == 1 { // some producers write one byte
			s = "\x00" + s
		}
		f.texts[n] = strings.TrimRight(fromUTF16(s), "\x00")
	}
	var args []any
	for {
		token, ok := l.next()
		if !ok {
			return
		}
		op, ok := token.(pdfOperator)
		if !ok {
			args = append(args, token)
			continue
		}
		switch op {
		case "endbfchar":
			for i := 0; i+1 < len(args); i += 2 {
				if s, ok := args[i+1].(string); ok {
					put(code(args[i]), s)
				}
			}
		case "endbfrange":
			for i := 0; i+2 < len(args); i += 3 {
				from, to := code(args[i]), code(args[i+1])
				switch as := args[i+2].(type) {
				case string:
					for n := from; n <= to; n++ {
						if put(n, as); as != "" { // the last unit is incremented
							last := []byte(as)
							for k := len(last) - 1; k >= max(0, len(last)-2); k-- {
								if last[k]++; last[k] != 0 {
									break
								}
							}
							as = string(last)
						}
					}
				case []any:
					for n, v := range as {
						if s, ok := v.(string); ok && from+n <= to {
							put(from+n, s)
						}
					}
				}
			}
		}
		args = args[:0]
	}
}

// windows and mac are the encodings with these names.
var (
	windows = tableOf("windows-1252")
	mac     = tableOf("macintosh")
)

func tableOf(charset string) (t [256]string) {
	for i := range t {
		if t[i] = page.Decode([]byte{byte(i)}, "text/plain; charset="+charset); i < ' ' {
			t[i] = unknown
		}
	}
	t['\t'], t['\n'], t['\r'] = "\t", "\n", "\n"
	return t
}

// standard is the encoding of fonts that name no other, limited to ASCII.
var standard = func() (t [256]string) {
	for i := range t {
		if t[i] = windows[i]; i >= 0x7f {
			t[i] = unknown
		}
	}
	t['\''], t['`'] = "’", "‘"
	return t
}()

// glyphs maps the names of characters in the fonts of TeX and other producers that don't
// declare their encoding.
var glyphs = func() map[string]string {
	m := map[string]string{}
	list := strings.Fields(`space U+20 exclam ! quotedbl " numbersign # dollar $ percent % ampersand & quotesingle ' quoteright ’ parenleft ( parenright ) asterisk * plus +
		comma , hyphen - period . slash / zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ; less < equal = greater > question ?
		at @ bracketleft [ backslash \ bracketright ] asciicircum ^ underscore _ quoteleft ‘ grave U+60 braceleft { bar | braceright } asciitilde ~ ff ff fi fi fl fl ffi ffi ffl ffl
		quotedblleft “ quotedblright ” quotedblbase „ quotesinglbase ‚ endash – emdash — bullet • dotlessi ı dotlessj ȷ germandbls ß ae æ oe œ oslash ø AE Æ OE Œ Oslash Ø
		exclamdown ¡ questiondown ¿ minus − multiply × divide ÷ plusminus ± periodcentered · degree ° section § paragraph ¶ copyright © ellipsis … guillemotleft « guillemotright »
		alpha α beta β gamma γ delta δ epsilon ϵ epsilon1 ε zeta ζ eta η theta θ iota ι kappa κ lambda λ mu µ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi ϕ phi1 φ chi χ psi ψ omega ω
		Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω summationtext ∑ summationdisplay ∑ integraltext ∫ integraldisplay ∫ producttext ∏ productdisplay ∏
		infinity ∞ partialdiff ∂ element ∈ lessequal ≤ greaterequal ≥ notequal ≠ arrowright → arrowleft ← arrowdblright ⇒ acute ´ dieresis ¨ circumflex ˆ tilde ˜ cedilla ¸ radical √ similar ∼ prime ′`)
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	m["space"], m["grave"], m["nbspace"] = " ", "`", " "
	return m
}()

// byNumber matches meaningless names, such as g23.
var byNumber = regexp.MustCompile(`^[A-Za-z]{1,5}[0-9]+$`)

// glyph returns the character with that name, or "" if the name is unknown.
func glyph(name string) string {
	if s, ok := glyphs[name]; ok {
		return s
	}
	if len(name) == 1 {
		return name
	}
	hex, ok := strings.CutPrefix(name, "uni")
	if !ok {
		hex, ok = strings.CutPrefix(name, "u")
	}
	if n, err := strconv.ParseUint(hex, 16, 32); ok && len(hex) >= 4 && err == nil && utf8.ValidRune(rune(n)) {
		return string(rune(n))
	}
	return ""
}

// namesOf returns the characters of a font that is not composite, by the names that the
// font or its program gives to its codes.
func namesOf(f pdf.Value) (t [256]string) {
	encoding, program := f.Key("Encoding"), f.Key("FontDescriptor")
	base := encoding.Name()
	if base == "" {
		base = encoding.Key("BaseEncoding").Name()
	}
	switch {
	case base == "WinAnsiEncoding":
		t = windows
	case base == "MacRomanEncoding":
		t = mac
	case program.Key("FontFile").Kind() == pdf.Stream:
		t = ownNames(program.Key("FontFile"))
	case encoding.Kind() == pdf.Null && program.Key("Flags").Int64()&4 != 0: // its codes are font-specific
		for i := range t {
			t[i] = unknown
		}
	default:
		t = standard
	}
	differences, n := encoding.Key("Differences"), 0
	decoder := (&pdf.Font{V: f}).Encoder() // it knows many more names
	for i := range differences.Len() {
		v := differences.Index(i)
		if v.Kind() == pdf.Integer {
			n = int(v.Int64())
			continue
		}
		if n >= 0 && n < len(t) {
			switch t[n] = glyph(v.Name()); {
			case t[n] != "":
			case f.Key("Subtype").Name() == "Type3" && v.Name() == "a"+strconv.Itoa(n): // a bitmap that TeX made from a font
				t[n] = standard[n]
			default:
				t[n] = decoder.Decode(string([]byte{byte(n)}))
				if t[n] == string(rune(n)) && (byNumber.MatchString(v.Name()) || n < ' ' || n > '~') {
					t[n] = unknown
				}
			}
		}
		n++
	}
	return t
}

// put matches how a Type 1 font names a code.
var put = regexp.MustCompile(`dup\s+(\d+)\s*/(\S+)\s+put`)

// ownNames returns the names in the program of a font, if they are in clear text.
func ownNames(program pdf.Value) [256]string {
	head, _ := io.ReadAll(io.LimitReader(program.Reader(), 64<<10)) // a damaged program yields fewer names
	if strings.Contains(string(head), "StandardEncoding def") {
		return standard
	}
	var t [256]string
	for i := range t {
		t[i] = unknown
	}
	for _, m := range put.FindAllSubmatch(head, -1) {
		if n, err := strconv.ParseUint(string(m[1]), 10, 8); err == nil {
			if s := glyph(string(m[2])); s != "" {
				t[n] = s
			}
		}
	}
	return t
}
