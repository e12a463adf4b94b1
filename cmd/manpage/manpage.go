// Package manpage generates a program's manual page from its commands, so that it agrees
// with `--help`.
//
// Only tests import it: `make man` runs them, so the programs don't get larger.
//
// The library's own documentation module omits arguments and has no sections besides the
// commands; this package writes man(7), which groff and mandoc render alike.
package manpage

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// Section is a part of a page that is not generated from commands: its heading and its
// paragraphs, each "TERM\tTEXT" or plain text.
type Section struct {
	Head  string
	Paras []string
}

// Page returns the manual page of section 1 for root and everything below it that is not
// hidden, followed by the given sections.
func Page(root *cli.Command, more ...Section) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" %s\n", quoted(strings.ToUpper(root.Name)), quoted("nize "+root.Version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", text(root.Name), text(root.Usage))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", text(root.Name))
	form := "[OPTIONS]"
	if len(root.Commands) > 0 {
		form += " [COMMAND …]"
	}
	b.WriteString(text(form) + "\n.SH OPTIONS\n")
	flags(&b, root)
	if len(root.Commands) > 0 {
		categories(&b, root)
	}
	for _, s := range more {
		fmt.Fprintf(&b, ".SH %s\n", text(s.Head))
		for _, p := range s.Paras {
			if term, rest, ok := strings.Cut(p, "\t"); ok {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", text(term), text(rest))
				continue
			}
			fmt.Fprintf(&b, ".PP\n%s\n", text(p))
		}
	}
	return b.String()
}

// categories adds the commands of root, each of their categories as a section in the order
// of `--help`.
func categories(b *strings.Builder, root *cli.Command) {
	var order []string
	members := map[string][]*cli.Command{}
	for _, sub := range root.Commands {
		if members[sub.Category] == nil && !sub.Hidden {
			order = append(order, sub.Category)
		}
		members[sub.Category] = append(members[sub.Category], sub)
	}
	for _, name := range order {
		fmt.Fprintf(b, ".SH %s\n", text(strings.ToUpper(cmp.Or(name, "commands"))))
		commands(b, members[name], ".SS")
	}
}

// commands adds commands and their subcommands, the leaves with their arguments. leaf is
// the request that begins a leaf.
func commands(b *strings.Builder, list []*cli.Command, leaf string) {
	for _, sub := range list {
		if sub.Hidden {
			continue
		}
		if len(sub.Commands) > 0 {
			fmt.Fprintf(b, ".SS %s\n%s\n", text(strings.TrimSpace(sub.FullName()+" "+sub.ArgsUsage)), text(sub.Usage))
			if len(sub.VisibleFlags()) > 0 {
				b.WriteString(".RS\n")
				flags(b, sub)
				b.WriteString(".RE\n")
			}
			commands(b, sub.Commands, ".TP\n.B")
			continue
		}
		fmt.Fprintf(b, "%s %s\n%s\n", leaf, text(strings.TrimSpace(sub.FullName()+" "+sub.ArgsUsage)), text(sub.Usage))
		b.WriteString(".RS\n")
		for para := range strings.SplitSeq(sub.Description, "\n") {
			if para = strings.TrimSpace(para); para != "" {
				fmt.Fprintf(b, ".PP\n%s\n", text(para))
			}
		}
		flags(b, sub)
		b.WriteString(".RE\n")
	}
}

// flags adds a command's own flags; an inherited one is listed where it is defined.
func flags(b *strings.Builder, c *cli.Command) {
	for _, f := range c.Flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if v, hides := f.(cli.VisibleFlag); !ok || hides && !v.IsVisible() || f.Names()[0] == "help" {
			continue
		}
		value, usage := unquote(doc.GetUsage())
		var names []string
		for _, n := range f.Names() {
			dash := "--"
			if len(n) == 1 {
				dash = "-"
			}
			names = append(names, dash+n)
		}
		head := strings.Join(names, ", ")
		if doc.TakesValue() {
			head += " " + value
		}
		if def := doc.GetDefaultText(); def != "" && doc.TakesValue() && def != "0" && def != `""` {
			usage += " (default: " + def + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", text(head), text(usage))
	}
}

// unquote splits the name of a flag's value, in backquotes, from its usage.
func unquote(usage string) (value, rest string) {
	before, after, ok := strings.Cut(usage, "`")
	name, after, closed := strings.Cut(after, "`")
	if !ok || !closed {
		return "VALUE", usage
	}
	return name, before + name + after
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// text returns s as running text: nothing in it is a request or an escape of roff.
func text(s string) string {
	s = escapes.Replace(strings.Join(strings.Fields(s), " "))
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}

// quoted returns s as one argument of a request.
func quoted(s string) string { return `"` + strings.ReplaceAll(text(s), `"`, `\(dq`) + `"` }
