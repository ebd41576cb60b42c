package expressions

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever asks does not wait longer than there is time, whatever goes on behind it.
func TestInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, ended := inTime(ctx, func() bool { time.Sleep(time.Minute); return true })
		if waited := time.Since(began); ended || waited != time.Second {
			t.Errorf("ended %v, waited %s", ended, waited)
		}
		time.Sleep(time.Minute)
	})
	if holds, ended := inTime(t.Context(), func() bool { return true }); !holds || !ended {
		t.Errorf("%v, %v", holds, ended)
	}
}

// A panic is found by whoever asked, who makes it a failure of the hook; in a goroutine
// of its own it would end the program.
func TestInTimePanics(t *testing.T) {
	defer func() {
		if p := recover(); p != "x" {
			t.Errorf("%v", p)
		}
	}()
	inTime(t.Context(), func() bool { panic("x") })
}
