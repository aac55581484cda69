package watch

// tree is an interval tree over the ranges of groups: a treap in the order of their starts, where every node knows the
// greatest end below it. Finding the k ranges around a key among n costs about log n + k.
type tree struct {
	root *node
	seed uint64
}

type node struct {
	group       *group
	priority    uint64
	left, right *node
	maxEnd      string // greatest end in the subtree; unused if open
	open        bool   // some range of the subtree has no end
}

// update recomputes maxEnd and open from the node's own range and its children.
func (n *node) update() {
	n.maxEnd, n.open = n.group.end, n.group.end == ""
	for _, child := range [...]*node{n.left, n.right} {
		if child != nil {
			n.open = n.open || child.open
			n.maxEnd = max(n.maxEnd, child.maxEnd)
		}
	}
}

// before orders groups by start, then by the other fields of their interest.
func (g *group) before(other *group) bool {
	if g.start != other.start {
		return g.start < other.start
	}
	if g.end != other.end {
		return g.end < other.end
	}
	return g.optionBits() < other.optionBits()
}

func (g *group) optionBits() int {
	bits := 0
	for i, on := range [...]bool{g.prevKV, g.noPut, g.noDelete} {
		if on {
			bits |= 1 << i
		}
	}
	return bits
}

// next draws a priority (splitmix64). Clients do not know the seed: a client that knew it could choose ranges that make the
// tree a list. The order in which stab visits groups does not depend on it.
func (t *tree) next() uint64 {
	t.seed += 0x9e3779b97f4a7c15
	z := t.seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (t *tree) insert(g *group) {
	t.root = insertNode(t.root, &node{group: g, priority: t.next()})
}

func insertNode(at, n *node) *node {
	switch {
	case at == nil:
		n.update()
		return n
	case n.priority > at.priority:
		n.left, n.right = split(at, n.group)
		n.update()
		return n
	case n.group.before(at.group):
		at.left = insertNode(at.left, n)
	default:
		at.right = insertNode(at.right, n)
	}
	at.update()
	return at
}

// split divides a subtree into the groups before g and the others.
func split(at *node, g *group) (left, right *node) {
	if at == nil {
		return nil, nil
	}
	if at.group.before(g) {
		at.right, right = split(at.right, g)
		at.update()
		return at, right
	}
	left, at.left = split(at.left, g)
	at.update()
	return left, at
}

func (t *tree) remove(g *group) { t.root = removeNode(t.root, g) }

func removeNode(at *node, g *group) *node {
	switch {
	case at == nil:
		return nil
	case at.group == g:
		return merge(at.left, at.right)
	case g.before(at.group):
		at.left = removeNode(at.left, g)
	default:
		at.right = removeNode(at.right, g)
	}
	at.update()
	return at
}

func merge(left, right *node) *node {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.priority > right.priority:
		left.right = merge(left.right, right)
		left.update()
		return left
	}
	right.left = merge(left, right.left)
	right.update()
	return right
}

// stab calls visit for every group whose range holds key.
func (t *tree) stab(key []byte, visit func(*group)) { stabNode(t.root, key, visit) }

func stabNode(at *node, key []byte, visit func(*group)) {
	for at != nil && (at.open || string(key) < at.maxEnd) {
		stabNode(at.left, key, visit)
		g := at.group
		if string(key) < g.start {
			return // and before every start on the right, too
		}
		if g.end == "" || string(key) < g.end {
			visit(g)
		}
		at = at.right
	}
}
