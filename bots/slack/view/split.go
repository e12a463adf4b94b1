package view

import "nize/bots/markdown"

// sizes are of Slack's messages, which take 12,000 characters of Markdown.
var sizes = markdown.Sizes{Part: 10_000, Soft: 8_500, Word: 9_500, Lead: 1_000}

// FirstPart is what of a text stands in the message that it begins.
func FirstPart(text string) string { return sizes.FirstPart(text) }

// Split cuts a text as it is streamed.
func Split(text string) []string { return sizes.Split(text) }

// Dress is what a message shows of a text: see [markdown.Sizes.Dress].
func Dress(before, body string, more bool) string { return sizes.Dress(before, body, more) }

// TailOf closes the code block that text leaves open.
func TailOf(text string) string { return sizes.TailOf(text) }
