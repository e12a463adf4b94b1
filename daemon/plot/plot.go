// Package plot draws usage by day as a PNG.
//
// The picture contains digits, dates and a currency sign, but no words: a caption in the
// reader's language, and a text alternative, describe it. So one small font is enough, and
// one golden test covers all languages.
//
// It is drawn with image/draw into a palette of a few colours: one byte per pixel, no
// floating point in the drawing, and identical bytes on every platform.
package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// Day is the usage of one day.
type Day struct {
	Date     string // YYYY-MM-DD
	Tokens   int64
	MicroUSD int64 // of calls whose price is known
}

// maxDays is how many days fit.
const maxDays = 31

// Sizes in pixels. Chats display a picture about 700 pixels wide; twice that would only
// make the file larger.
const (
	width     = 960
	left      = 80 // of the first bar, leaving space for the scale's numbers
	right     = 20
	top       = 30
	tokenArea = 240 // height of the scale
	moneyArea = 120
	between   = 60 // for the dates
	textSize  = 16
)

// ink is the palette: white, seven steps to the colour of text, and two colours of bars.
var ink = func() color.Palette {
	p := color.Palette{}
	for n := range 8 {
		v := uint8(255 - n*30) // 255 to 45
		p = append(p, color.RGBA{v, v, v, 255})
	}
	return append(p, color.RGBA{0x1d, 0x35, 0x57, 255}, color.RGBA{0x2a, 0x7f, 0x62, 255})
}()

const (
	paper  = 0
	grid   = 1
	letter = 7
	tokens = 8
	money  = 9
)

// face is created once; only one goroutine at a time may draw with it.
var (
	drawing sync.Mutex
	face    = sync.OnceValues(func() (font.Face, error) {
		f, err := opentype.Parse(goregular.TTF)
		if err != nil {
			return nil, fmt.Errorf("reading the font: %w", err)
		}
		return opentype.NewFace(f, &opentype.FaceOptions{Size: textSize, DPI: 72, Hinting: font.HintingFull})
	})
)

// PNG draws the days, newest last: a bar for the tokens of each and, if anything cost
// money, one below for the cost. It draws only the last maxDays.
func PNG(days []Day) ([]byte, error) {
	letters, err := face()
	if err != nil {
		return nil, err
	}
	days = days[max(0, len(days)-maxDays):]
	costs := false
	for _, d := range days {
		costs = costs || d.MicroUSD > 0
	}
	high := top + tokenArea + between
	if costs {
		high += moneyArea + between
	}
	drawing.Lock()
	defer drawing.Unlock()
	p := &picture{Paletted: image.NewPaletted(image.Rect(0, 0, width, high), ink), letters: letters, days: days}
	p.bars(area{base: top + tokenArea, high: tokenArea, ink: tokens, value: func(d Day) int64 { return d.Tokens }, say: short})
	if costs {
		p.bars(area{base: high - between, high: moneyArea, ink: money, value: func(d Day) int64 { return d.MicroUSD }, say: dollars})
	}
	var out bytes.Buffer
	if err := png.Encode(&out, p); err != nil {
		return nil, fmt.Errorf("writing a picture: %w", err)
	}
	return out.Bytes(), nil
}

type picture struct {
	*image.Paletted
	letters font.Face
	days    []Day
}

// area is one diagram in a picture.
type area struct {
	base, high int // y of the scale's zero, and the height above it
	ink        int
	value      func(Day) int64
	say        func(int64) string
}

// bars draws the scale, a bar for each day and the dates.
func (p *picture) bars(a area) {
	bounded := func(d Day) int64 { return min(max(a.value(d), 0), math.MaxInt64/10) }
	most := int64(0)
	for _, d := range p.days {
		most = max(most, bounded(d))
	}
	step, steps := scale(most)
	for n := range steps + 1 {
		y := a.base - n*a.high/steps
		p.fill(image.Rect(left, y, width-right, y+1), grid)
		p.write(a.say(int64(n)*step), left-8, y+5, 1)
	}
	slot := (width - left - right) / max(len(p.days), 1)
	every := 1 + 56/max(slot, 1) // omit dates that would touch each other
	for i, d := range p.days {
		x := left + i*slot
		v := bounded(d)
		high := int(float64(v) / float64(step*int64(steps)) * float64(a.high))
		if v > 0 {
			high = max(high, 2)
		}
		pad := max(slot/6, 1)
		p.fill(image.Rect(x+pad, a.base-high, x+slot-pad, a.base), a.ink)
		if v > 0 && slot >= 60 {
			p.write(a.say(v), x+slot/2, a.base-high-6, 0)
		}
		if (len(p.days)-1-i)%every == 0 && len(d.Date) >= 10 {
			p.write(d.Date[5:10], x+slot/2, a.base+24, 0)
		}
	}
	p.fill(image.Rect(left, a.base, width-right, a.base+1), letter)
}

func (p *picture) fill(r image.Rectangle, with int) {
	draw.Draw(p, r, image.NewUniform(ink[with]), image.Point{}, draw.Src)
}

// write draws text at a position: if side is 1 it ends there, if 0 it is centred.
func (p *picture) write(text string, x, y, side int) {
	long := font.MeasureString(p.letters, text).Round()
	at := x - long
	if side == 0 {
		at = x - long/2
		p.fill(image.Rect(at-2, y-textSize+3, at+long+2, y+2), paper) // erase the scale's lines behind it
	}
	d := font.Drawer{Dst: p, Src: image.NewUniform(ink[letter]), Face: p.letters, Dot: fixed.P(at, y)}
	d.DrawString(text)
}

// scale returns the distance between the lines of a scale, 1, 2 or 5 times a power of ten,
// and how many are needed up to the maximum, at most five.
func scale(most int64) (step int64, steps int) {
	step = 1
	for n := 0; (most+step-1)/step > 5; n++ {
		if n%3 == 1 {
			step = step / 2 * 5 // 2 becomes 5
		} else {
			step *= 2
		}
	}
	return step, int(max((most+step-1)/step, 1))
}

// short formats a count in few characters: 950, 12.3k, 4.5M.
func short(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= unit.size {
			text := strconv.FormatFloat(float64(n)/float64(unit.size), 'f', 1, 64)
			return strings.TrimSuffix(text, ".0") + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// dollars formats a sum with as many decimals as needed for a non-zero digit.
func dollars(micro int64) string {
	places := 2
	if micro > 0 && micro < 100 {
		return "<$0.0001"
	}
	if micro > 0 && micro < 10_000 {
		places = 4
	}
	return "$" + strconv.FormatFloat(float64(micro)/1e6, 'f', places, 64)
}
