package arguments

import (
	"regexp"
	"strings"
)

// maxTable limits the work for a diff: lines before times lines after. A larger change is
// shown as all lines removed and all lines added.
const maxTable = 1 << 20

// Compare returns the diff of two texts by line. It is complete, so both texts can be read
// from it; a text that ends with a line break has an empty last line.
func Compare(was, becomes string) []Line {
	before, after := strings.Split(was, "\n"), strings.Split(becomes, "\n")
	if was == "" {
		before = nil
	}
	if becomes == "" {
		after = nil
	}
	var head, tail []Line
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		head = append(head, Line{" ", escape(before[0])})
		before, after = before[1:], after[1:]
	}
	end := 0
	for end < len(before) && end < len(after) && before[len(before)-1-end] == after[len(after)-1-end] {
		end++
	}
	for _, line := range before[len(before)-end:] {
		tail = append(tail, Line{" ", escape(line)})
	}
	return append(between(head, before[:len(before)-end], after[:len(after)-end]), tail...)
}

// between adds the lines of a section that differs at both ends, using the longest common
// subsequence.
func between(out []Line, before, after []string) []Line {
	if len(before)*len(after) > maxTable {
		out = all(out, "-", before)
		return all(out, "+", after)
	}
	width := len(after) + 1
	common := make([]int32, (len(before)+1)*width) // for before[i:] and after[j:]
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		switch {
		case before[i] == after[j]:
			out = append(out, Line{" ", escape(before[i])})
			i, j = i+1, j+1
		case common[(i+1)*width+j] >= common[i*width+j+1]:
			out = append(out, Line{"-", escape(before[i])})
			i++
		default:
			out = append(out, Line{"+", escape(after[j])})
			j++
		}
	}
	out = all(out, "-", before[i:])
	return all(out, "+", after[j:])
}

func all(out []Line, op string, lines []string) []Line {
	for _, line := range lines {
		out = append(out, Line{op, escape(line)})
	}
	return out
}

// hunk matches the header of changes in a unified diff, and file the header of a file in it
// or in the format of coding agents.
var (
	hunk = regexp.MustCompile(`(?m)^@@ -\d+(,\d+)? \+\d+(,\d+)? @@`)
	file = regexp.MustCompile(`^\*\*\* Begin Patch\n`)
)

// isPatch reports whether a text is itself a diff.
func isPatch(text string) bool { return hunk.MatchString(text) || file.MatchString(text) }

// patch returns the lines of a diff.
func patch(text string) (lines []Line) {
	for line := range strings.SplitSeq(text, "\n") {
		op := "@"
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), line == "":
		case strings.ContainsRune("-+ ", rune(line[0])):
			op, line = line[:1], line[1:]
		}
		lines = append(lines, Line{op, escape(line)})
	}
	return lines
}
