// Package theme is the common style of nize's pages: colours, light and dark, fonts and
// controls.
//
// The chat page and the pages of the chat doubles load it before their own styles.
package theme

import _ "embed" // for the style sheet

// Base is the style sheet.
//
//go:embed base.css
var Base []byte
