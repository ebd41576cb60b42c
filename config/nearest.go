package config

import "stopgate/internal/nearest"

// DidYouMean is [nearest.DidYouMean], for what is wrong in a file.
func DidYouMean(word string, legal []string) string { return nearest.DidYouMean(word, legal) }

func quoted(s string) string { return `"` + s + `"` }
