package transcripts

import "hash/maphash"

// tree is a conversation whose lines name the line before them: where a person
// went back and asked otherwise, the abandoned lines stay in the file. What
// counts is the way from the last line of the conversation to the root.
//
// Only where lines lie and who their parents are is kept, 24 bytes each.
type tree struct {
	nodes  []node
	seed   maphash.Seed
	ids    map[uint64]int32 // of a line: its index
	groups map[uint64]int32 // of a message id: its number
	last   [2]int32         // the last line of the main conversation, and of the side ones
	leaf   [2]int32         // the last line of each that is conversation
}

type node struct {
	at     int64
	size   int32
	parent int32 // index, always lower; none at a root
	group  int32 // number of the message it belongs to; none
	flags  nodeFlags
}

type nodeFlags uint8

const (
	talk     nodeFlags = 1 << iota // a line of conversation; others only hold the tree together
	result                         // all it holds is results
	side                           // of a sub-agent
	onTheWay                       // from the last leaf to the root, or beside it
)

const none = -1

// treeLine is what a line says about its place. Ids are raw JSON; nil: absent.
type treeLine struct {
	id, parent, message []byte
	logical             []byte // the parent of a root that goes on after a compaction
	flags               nodeFlags
}

func (t *tree) held() int { return len(t.nodes) }

func (t *tree) add(l treeLine, sp extent) error {
	if t.ids == nil {
		*t = tree{seed: maphash.MakeSeed(), ids: map[uint64]int32{}, groups: map[uint64]int32{},
			last: [2]int32{none, none}, leaf: [2]int32{none, none}}
	}
	if len(t.nodes) == maxSpans {
		return errTooManyLines
	}
	n := node{at: sp.at, size: sp.size, group: none, flags: l.flags}
	if l.id != nil {
		id := maphash.Bytes(t.seed, l.id)
		if _, twice := t.ids[id]; twice {
			return nil
		}
		t.ids[id] = int32(len(t.nodes))
	}
	if l.message != nil {
		id := maphash.Bytes(t.seed, l.message)
		if _, known := t.groups[id]; !known {
			t.groups[id] = int32(len(t.groups))
		}
		n.group = t.groups[id]
	}
	which := n.flags.side()
	n.parent = t.parentOf(l, which)
	t.last[which] = int32(len(t.nodes))
	if n.flags&talk != 0 {
		t.leaf[which] = int32(len(t.nodes))
	}
	t.nodes = append(t.nodes, n)
	return nil
}

func (f nodeFlags) side() int {
	if f&side != 0 {
		return 1
	}
	return 0
}

// parentOf is the index of a line's parent. One that is not in the file, since
// its line is damaged or was never written, is taken to be the line before.
func (t *tree) parentOf(l treeLine, which int) int32 {
	parent := l.parent
	if string(parent) == "null" {
		if parent = l.logical; parent == nil || string(parent) == "null" {
			return none
		}
	}
	if parent != nil {
		if i, ok := t.ids[maphash.Bytes(t.seed, parent)]; ok && int(i) < len(t.nodes) && t.nodes[i].flags.side() == which {
			return i
		}
	}
	return t.last[which]
}

// chosen is the lines of conversation on the way from the last leaf to the
// root, in the order of the file. A tool's results hang beside the way where
// several tools were called at once, and so can parts of one message: they
// belong to it. A file of side lines only is a sub-agent's own.
func (t *tree) chosen() []extent {
	if len(t.nodes) == 0 {
		return nil
	}
	which := 0
	if t.leaf[0] == none {
		which = 1
	}
	for i := range t.nodes { // it may have been another way, when there were fewer lines
		t.nodes[i].flags &^= onTheWay
	}
	messages := make([]bool, len(t.groups))
	for i := t.leaf[which]; i != none; i = t.nodes[i].parent {
		n := &t.nodes[i]
		n.flags |= onTheWay
		if n.group != none {
			messages[n.group] = true
		}
	}
	var spans []extent
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.flags&talk == 0 || n.flags.side() != which {
			continue
		}
		beside := n.group != none && messages[n.group] ||
			n.flags&result != 0 && n.parent != none && t.nodes[n.parent].flags&onTheWay != 0
		if beside {
			n.flags |= onTheWay
		}
		if n.flags&onTheWay != 0 {
			spans = append(spans, extent{n.at, n.size})
		}
	}
	return spans
}
