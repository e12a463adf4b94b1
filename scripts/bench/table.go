package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is one figure. The limits are in the unit that they apply to: the ratio if there is
// one, otherwise the value.
type row struct {
	what      string
	value     float64
	unit      string
	reference string  // the value that it is compared with, measured in this run
	ratio     float64 // 0 if there is none
	floor     float64 // 0 if there is none
	aim       float64
	more      bool   // more is better
	counted   bool   // a ratio, a count or a size: it is valid on every machine, so -floors checks it
	missing   string // why it could not be measured
}

func (r row) judged() float64 {
	if r.ratio != 0 {
		return r.ratio
	}
	return r.value
}

// short reports whether the figure misses its limit.
func (r row) short() bool {
	if r.floor == 0 || r.missing != "" {
		return false
	}
	if r.more {
		return r.judged() < r.floor
	}
	return r.judged() > r.floor
}

type table []row

func (t *table) add(r row) { *t = append(*t, r) }

func (t table) print(w io.Writer) {
	fmt.Fprintln(w, "| what | measured | reference | ratio | floor | aim |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- |")
	for _, r := range t {
		unit := r.unit
		measured := number(r.value) + space(unit)
		if r.missing != "" {
			measured = "not measured: " + r.missing
		}
		ratio := ""
		if r.ratio != 0 {
			ratio, unit = number(r.ratio)+"x", "x"
			if r.short() {
				ratio = "**" + ratio + "**"
			}
		} else if r.short() {
			measured = "**" + measured + "**"
		}
		limit := func(v float64) string {
			switch {
			case v == 0:
				return ""
			case unit == "x":
				return number(v) + "x"
			}
			return number(v) + space(unit)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", r.what, measured, r.reference, ratio, limit(r.floor), limit(r.aim))
	}
}

// missed returns an error with the machine-independent figures that miss their limit.
func (t table) missed() error {
	var names []string
	for _, r := range t {
		if r.counted && r.short() {
			names = append(names, fmt.Sprintf("%s (%s, floor %s)", r.what, number(r.judged()), number(r.floor)))
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("below the floor: %s", strings.Join(names, "; "))
	}
	return nil
}

func space(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}

// number formats a figure with three significant digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median[T time.Duration | float64](list []T) T {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// machine returns a description of the machine.
func machine() string {
	model := runtime.GOARCH
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	load := ""
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = ", load " + strings.Join(strings.Fields(string(b))[:3], " ")
	}
	return fmt.Sprintf("%s, %d cores%s, %s/%s, %s", model, runtime.NumCPU(), load, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
