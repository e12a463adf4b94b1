// Package scan checks tool definitions of upstream servers before any other code uses them.
//
// It checks whether the schema is safe to process, whether the definition is still the one
// that was accepted, and whether its text hides something or instructs the model.
//
// An upstream is treated as hostile, so everything here works on raw bytes, in bounded
// time, without network or files (a test checks the imports), and deterministically. It
// answers three questions:
//
//   - [Gate.Check]: may this schema be compiled, indexed or shown to a model at
//     all? An error refuses the tool by name; the server's other tools work.
//   - [Gate.Pin]: a hash of everything that a person accepted when they
//     accepted the tool, and findings: sentences about hidden characters and
//     text addressed to the model. A finding holds the tool until an admin has
//     reviewed it; it is never a proof. [Gate.Shadow] adds findings that depend on two servers.
//   - [Mixed]: for approval cards and terminals, text in its real form
//     instead of its appearance.
//
// Findings favour precision over recall: a finding on a harmless tool teaches people to
// accept without reading. So common features of real tools are allowed: emoji with joiners,
// Persian and Indic text, "IMPORTANT:", "call X first".
package scan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"nize/store"
)

// Gate combines the schema gate and the scan; its zero value is ready for use and safe for
// concurrent use. Pool.Sync runs it on every list.
type Gate struct{}

// part is one piece of a definition in the hashed document: JSON is hashed in its canonical
// form if it has one, and other bytes as they are.
type part struct {
	JSON json.RawMessage `json:"json,omitempty"`
	Raw  string          `json:"raw,omitempty"` // hex SHA-256
}

// definition is the hashed document. Changing a field's name or meaning changes every pin,
// so that every tool of every installation would be held once.
type definition struct {
	Annotations  store.Annotations `json:"annotations"`
	Args         []part            `json:"args"`
	Command      part              `json:"command"`
	Cwd          part              `json:"cwd"`
	Description  part              `json:"description"`
	Icons        *part             `json:"icons,omitempty"` // omitted if empty, for compatibility with pins from before icons were included
	InputSchema  part              `json:"input_schema"`
	Instructions part              `json:"instructions"`
	Meta         part              `json:"meta"`
	Name         part              `json:"name"`
	OutputSchema part              `json:"output_schema"`
	Title        part              `json:"title"`
	Transport    store.Transport   `json:"transport"`
	URL          part              `json:"url"`
}

// Pin returns the hash of the tool's definition as listed, in hex, and the findings, one
// sentence each, the serious ones first, or nil.
//
// The pin is SHA-256 over the canonical JSON of launch command (with arguments and working
// directory) or URL, server instructions, name, title, description, both schemas,
// annotations, meta and icons, if there are any. Key order and white space inside schemas
// don't count; any other byte does. The pin covers an icon's address, not the picture that
// an https address returns. It excludes the fields in [unpinned] and the members of the
// protocol's Tool that nize does not store (execution hints, unknown members): these reach
// no client, person or model through nize.
func (Gate) Pin(server store.Server, instructions string, tool store.Tool) (pin string, findings []string) {
	return hash(server, instructions, tool), inspect(instructions, tool)
}

// unpinned lists the fields of a tool that its pin excludes, each with the reason. A test
// checks that all other fields are included.
var unpinned = map[string]string{
	"Server":   "an admin chose the name",
	"State":    "follows from the pin",
	"Pin":      "is the pin",
	"Accepted": "is the pin that an admin accepted",
	"Findings": "follow from the definition, and from the rules of this version",
	"Around":   "is the launch and the instructions that the pin is made of, cut to be shown",
	"Was":      "is the definition that was accepted",
}

func hash(server store.Server, instructions string, tool store.Tool) string {
	doc := definition{
		Annotations:  tool.Annotations,
		Args:         make([]part, len(server.Args)),
		Command:      textPart(server.Command),
		Cwd:          textPart(server.Cwd),
		Description:  textPart(tool.Description),
		InputSchema:  jsonPart(tool.InputSchema),
		Instructions: textPart(instructions),
		Meta:         jsonPart(tool.Meta),
		Name:         textPart(tool.Name),
		OutputSchema: jsonPart(tool.OutputSchema),
		Title:        textPart(tool.Title),
		Transport:    server.Transport,
		URL:          textPart(server.URL),
	}
	for i, arg := range server.Args {
		doc.Args[i] = textPart(arg)
	}
	if len(tool.Icons) > 0 {
		icons := jsonPart(tool.Icons)
		doc.Icons = &icons
	}
	plain, err := json.Marshal(doc)
	if err != nil {
		// unreachable: only an invalid RawMessage fails, and jsonPart accepts none.
		panic("scan: marshalling a definition: " + err.Error())
	}
	sum := sha256.Sum256(plain)
	if canonical, err := store.Canonical(plain); err == nil {
		sum = sha256.Sum256(canonical)
	}
	return hex.EncodeToString(sum[:])
}

// textPart keeps invalid UTF-8 distinguishable: json.Marshal would write U+FFFD for every
// invalid byte, and two definitions could share a pin.
func textPart(s string) part {
	if !utf8.ValidString(s) {
		return rawPart([]byte(s))
	}
	b, err := json.Marshal(s)
	if err != nil {
		return rawPart([]byte(s))
	}
	return part{JSON: b}
}

func jsonPart(raw json.RawMessage) part {
	if len(raw) == 0 {
		return part{}
	}
	canonical, err := store.Canonical(raw)
	if err != nil {
		return rawPart(raw)
	}
	return part{JSON: canonical}
}

func rawPart(b []byte) part {
	sum := sha256.Sum256(b)
	return part{Raw: hex.EncodeToString(sum[:])}
}
