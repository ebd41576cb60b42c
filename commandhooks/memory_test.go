package commandhooks

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestMemoryIsConfirmed: one look over the limit is no reason to kill, two in a
// row are.
func TestMemoryIsConfirmed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		looks []int64 // what is used; the hook ends after the last
		want  killed
	}{
		{"never", []int64{1, 100, 100}, notKilled},
		{"once", []int64{101, 100}, notKilled},
		{"now and then", []int64{101, 100, 101, 100}, notKilled},
		{"twice in a row", []int64{100, 101, 101}, outOfMemory},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended, looks := make(chan struct{}), tt.looks
				p := &process{limit: 100, used: func() int64 {
					now := looks[0]
					if looks = looks[1:]; len(looks) == 0 && tt.want == notKilled {
						close(ended)
					}
					return now
				}}
				if got := p.watch(context.Background(), ended); got != tt.want {
					t.Errorf("watch = %d, want %d", got, tt.want)
				}
			})
		})
	}
}
