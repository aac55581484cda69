package linked

// List is a list of T, oldest first. The zero List is empty.
type List[T any] struct {
	first, last *Place[T]
	count       int
}

// Place has the links of one element.
type Place[T any] struct {
	list          *List[T] // nil: in none
	before, after *Place[T]
	element       *T
}

// Len is how many elements there are.
func (l *List[T]) Len() int { return l.count }

// First is the element in front, nil if there is none.
func (l *List[T]) First() *T { return l.first.get() }

// PushBack puts an element last. Its place must be in no list.
func (l *List[T]) PushBack(p *Place[T], element *T) {
	p.list, p.element, p.before, p.after = l, element, l.last, nil
	if l.last == nil {
		l.first = p
	} else {
		l.last.after = p
	}
	l.last = p
	l.count++
}

// List is the list that the place is in, nil if in none.
func (p *Place[T]) List() *List[T] { return p.list }

// Next is the element behind, nil if there is none.
func (p *Place[T]) Next() *T { return p.after.get() }

// Remove takes the element out of the list that it is in, if any.
func (p *Place[T]) Remove() {
	l := p.list
	if l == nil {
		return
	}
	if p.before == nil {
		l.first = p.after
	} else {
		p.before.after = p.after
	}
	if p.after == nil {
		l.last = p.before
	} else {
		p.after.before = p.before
	}
	l.count--
	*p = Place[T]{}
}

func (p *Place[T]) get() *T {
	if p == nil {
		return nil
	}
	return p.element
}
