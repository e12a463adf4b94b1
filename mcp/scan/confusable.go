package scan

import (
	"strings"
	"unicode"

	"nize/store"
)

// looks maps the letters and marks that most fonts draw like an ASCII character to that
// character (based on Unicode Technical Standard 39, confusables.txt: the Cyrillic, Greek,
// Armenian, Cherokee, Lisu and Latin ones that occur in deceptive names).
var looks = func() map[rune]rune {
	m := map[rune]rune{}
	add := func(ascii, others string) {
		for i, r := range []rune(others) {
			m[r] = rune(ascii[i])
		}
	}
	add("aceopxyijshvdqwkmtbnrgl", "асеорхуіјѕһѵԁԛԝкмтьпгɡӏ")
	add("ABCEHIJKMOPSTXYGZVWN", "АВСЕНІЈКМОРЅТХҮԌΖѴԜΝ")
	add("ABEZHIKMNOPTYX", "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
	add("aovnuipkytxc", "αονηυιρκγτχϲ")
	add("hnouqgfl", "հոօսզցƒⅼ")
	add("DTARESWMHYLGCPKJVBZ", "ᎠᎢᎪᎡᎬᏚᏔᎷᎻᎩᏞᏀᏟᏢᏦᎫᏙᏴᏃ")
	add("BPDTGKJCZFMNLSRVHWXYAEIOU", "ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ")
	add("ijlaggvwzcosu", "ıȷłɑɡɢᴠᴡᴢᴄᴏꜱᴜ")
	add("/////\\...:-'", "⁄∕⧸╱⟋⧵․．。։‐ʹ")
	return m
}()

// lookalike returns the ASCII character that r looks like.
func lookalike(r rune) (rune, bool) {
	switch {
	case r < 0x80:
		return 0, false
	case r >= 0xff01 && r <= 0xff5e: // fullwidth forms
		return r - 0xff01 + '!', true
	case r >= 0x1d400 && r <= 0x1d6a3: // mathematical letters: 13 alphabets of 52
		n := (r - 0x1d400) % 52
		if n < 26 {
			return 'A' + n, true
		}
		return 'a' + n - 26, true
	case r >= 0x1d7ce && r <= 0x1d7ff: // mathematical digits
		return '0' + (r-0x1d7ce)%10, true
	case r >= 0x24b6 && r <= 0x24cf: // circled letters
		return 'A' + r - 0x24b6, true
	case r >= 0x24d0 && r <= 0x24e9:
		return 'a' + r - 0x24d0, true
	}
	a, ok := looks[r]
	return a, ok
}

var scripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian},
	{"Cherokee", unicode.Cherokee}, {"Lisu", unicode.Lisu}, {"Coptic", unicode.Coptic}, {"Georgian", unicode.Georgian},
	{"Hebrew", unicode.Hebrew}, {"Arabic", unicode.Arabic}, {"Han", unicode.Han}, {"Hiragana", unicode.Hiragana},
	{"Katakana", unicode.Katakana}, {"Hangul", unicode.Hangul}, {"Bopomofo", unicode.Bopomofo}, {"Thai", unicode.Thai},
	{"Devanagari", unicode.Devanagari}, {"Bengali", unicode.Bengali}, {"Tamil", unicode.Tamil}, {"Telugu", unicode.Telugu},
}

// scriptsOf returns the scripts of the letters of s, in the order above.
func scriptsOf(s string) []string {
	var names []string
	for _, sc := range scripts {
		if strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(sc.table, r) }) {
			names = append(names, sc.name)
		}
	}
	return names
}

// together reports whether people mix these scripts in one word: each alone, and Latin with
// East Asian ones (UTS 39, "highly restrictive").
func together(names []string) bool {
	if len(names) < 2 {
		return true
	}
	for _, n := range names {
		switch n {
		case "Latin", "Han", "Hiragana", "Katakana", "Hangul", "Bopomofo":
		default:
			return false
		}
	}
	return true
}

// disguised reports whether a word without ASCII letters reads as an ASCII one: each of its
// letters looks like an ASCII letter.
func disguised(s string) bool {
	letters := 0
	for _, r := range s {
		if !unicode.IsLetter(r) {
			continue
		}
		if _, ok := lookalike(r); !ok {
			return false
		}
		letters++
	}
	return letters > 1
}

// words splits an identifier at all characters except letters and their marks.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
}

// mixedName returns why an identifier is visually deceptive, or "".
func mixedName(name string) string {
	if isPlain(name) {
		return ""
	}
	if disguised(name) {
		return "only looks like the ASCII name " + quote(skeleton(name))
	}
	for _, word := range words(name) {
		if names := scriptsOf(word); !together(names) && hasLookalike(word) {
			return "mixes " + list(names) + " letters; it reads like " + quote(skeleton(name))
		}
		if posing(word) {
			return "has letters that only look ASCII; it reads like " + quote(skeleton(name))
		}
	}
	return ""
}

func hasLookalike(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { _, ok := lookalike(r); return ok })
}

// posing reports whether a word consists of ASCII letters and look-alikes. The dotless i
// and the barred l are letters of Turkish and Polish, and count as look-alikes only where
// no such word can occur: in a host (see deceivesHost).
func posing(word string) bool {
	ascii, other := false, false
	for _, r := range word {
		if r < 0x80 || r == 'ı' || r == 'ł' {
			ascii = ascii || unicode.IsLetter(r)
		} else if _, ok := lookalike(r); ok {
			other = true
		} else {
			return false
		}
	}
	return ascii && other
}

// skeleton returns s as a hasty reader sees it.
func skeleton(s string) string {
	return strings.Map(func(r rune) rune {
		if a, ok := lookalike(r); ok {
			return a
		}
		return r
	}, s)
}

// quote returns s in quotes, with all non-ASCII characters as \u escapes.
func quote(s string) string { return `"` + escape(store.Clip(s, 80)) + `"` }

func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
