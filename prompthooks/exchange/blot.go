package exchange

import "stopgate/gate"

// Blot is a text with "[key]" for each of a provider's keys ([gate.Blot]).
// Below 8 bytes a key is no secret but a word that a local server wants to be
// there ("none", "EMPTY").
func Blot(text []byte, secrets []string) []byte { return gate.Blot(text, secrets, 8) }
