package hookclient

import "os"

// mute keeps whatever a library or the runtime may say away from the host:
// Gemini CLI and Qwen Code take text on standard error for the answer when
// standard output is empty (EFFECTS §3.9).
func mute(stderr *os.File) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer null.Close()
	_ = replace(int(null.Fd()), int(stderr.Fd()))
}
