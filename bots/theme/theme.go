// Package theme is what nize's own pages in the browser have in common, so that they keep
// in step: the colours, light and dark, the fonts, and how controls look. The chat page
// and the pages of the pretended chats serve it before their own styles.
package theme

import _ "embed" // the style

// Base is the style.
//
//go:embed base.css
var Base []byte
