package transcripts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"stopgate/gate"
)

// maxTools is how many different tools are recalled; a conversation with more is
// hostile, and no part of them would be the truth.
const maxTools = 1000

var (
	errPlainText  = errors.New("the conversation is plain text, which does not say for sure who said what")
	errManyTools  = errors.New("the conversation calls more tools than can be recalled")
	errLongPrompt = errors.New("the user's message has a line that is too long to be recalled")
)

// Recall reads the whole view once; see [gate.Recalling].
func (v *view) Recall(ctx context.Context) (gate.Recalled, error) {
	if v.asText {
		return gate.Recalled{}, errPlainText
	}
	in := lineReader{r: bufio.NewReaderSize(io.NewSectionReader(v.text, 0, v.size), block), most: block}
	var said gate.Recalled
	var prompt []byte
	asked := false // the lines are of the user's message
	for {
		if in.number%1000 == 0 && ctx.Err() != nil {
			return gate.Recalled{}, ctx.Err()
		}
		line, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			said.Prompt = gate.Cut(string(bytes.TrimSpace(prompt)), gate.RecalledBytes)
			return said, nil
		case errors.Is(err, errLongLine):
			if asked && len(prompt) < gate.RecalledBytes {
				return gate.Recalled{}, errLongPrompt
			}
		case err != nil:
			return gate.Recalled{}, v.lost(err)
		case bytes.HasPrefix(line, []byte(markBegin)) && bytes.HasSuffix(line, []byte(markEnd)) && len(line) > len(markBegin)+len(markEnd):
			e := entry{words: briefly(line[len(markBegin) : len(line)-len(markEnd)])}
			if asked = e.user(); asked {
				prompt = prompt[:0]
			}
			if tool := e.tool(); strings.HasPrefix(e.words, "assistant calls ") && !slices.Contains(said.Tools, tool) {
				if said.Tools = append(said.Tools, tool); len(said.Tools) > maxTools {
					return gate.Recalled{}, errManyTools
				}
			}
		case asked && len(prompt) <= gate.RecalledBytes:
			prompt = append(append(prompt, line...), '\n')
		}
	}
}
