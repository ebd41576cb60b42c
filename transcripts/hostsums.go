package transcripts

import (
	"hash/maphash"
	"io"
	"math/rand/v2"
	"sort"
)

const (
	pieceBytes = 64 << 10 // of a piece, at the most
	maxChecked = 1 << 20  // about so much is read to know a file again
)

// sums are of the pieces of a file, so that it is known again without being
// read. A file of up to maxChecked bytes is known by every byte; of a longer one
// its beginning, its end and pieces at random are compared.
type sums struct {
	hash   maphash.Hash
	at     int64 // so far bytes are summed
	begun  int64 // where the last piece begins, which has no sum yet
	pieces []piece
}

type piece struct {
	end int64
	sum uint64
}

// add goes on with a line and its newline.
func (s *sums) add(line []byte) {
	s.write(line)
	s.write([]byte{'\n'})
}

func (s *sums) write(p []byte) {
	for len(p) > 0 {
		part := p[:min(int64(len(p)), s.begun+pieceBytes-s.at)]
		_, _ = s.hash.Write(part)
		s.at += int64(len(part))
		p = p[len(part):]
		if s.at == s.begun+pieceBytes {
			s.cut()
		}
	}
}

// cut ends the last piece, so that match can be asked.
func (s *sums) cut() {
	if s.at > s.begun {
		s.pieces = append(s.pieces, piece{s.at, s.hash.Sum64()})
		s.begun = s.at
	}
	s.hash.Reset()
}

// match reports whether a file begins with what was summed. The last piece has
// to be cut.
func (s *sums) match(r io.ReaderAt) bool {
	buf := make([]byte, pieceBytes)
	if s.at <= maxChecked {
		for i := range s.pieces {
			if s.matchPiece(r, i, buf) == 0 {
				return false
			}
		}
		return true
	}
	checked, last := int64(0), len(s.pieces)-1
	for n := 0; checked < maxChecked; n++ {
		i := 0
		switch {
		case n > 0 && checked < maxChecked/2: // the end, where two sessions differ
			i = last + 1 - n
		case n > 0:
			at := rand.Int64N(s.at)
			i = sort.Search(last, func(i int) bool { return s.pieces[i].end > at })
		}
		size := s.matchPiece(r, i, buf)
		if size == 0 {
			return false
		}
		checked += size
	}
	return true
}

// matchPiece is the size of a piece that is as it was; 0 if it is not. buf has
// room for it.
func (s *sums) matchPiece(r io.ReaderAt, i int, buf []byte) int64 {
	from := int64(0)
	if i > 0 {
		from = s.pieces[i-1].end
	}
	b := buf[:s.pieces[i].end-from]
	if n, _ := r.ReadAt(b, from); n < len(b) {
		return 0
	}
	s.hash.Reset()
	_, _ = s.hash.Write(b)
	sum := s.hash.Sum64()
	s.hash.Reset()
	if sum != s.pieces[i].sum {
		return 0
	}
	return int64(len(b))
}
