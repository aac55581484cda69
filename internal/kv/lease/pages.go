package lease

// pageLength is the number of values of a page.
const pageLength = 1024

// pages is a list that grows by a page, so that no call waits while a long list is copied into a longer one.
type pages[T any] struct {
	list [][]T // all but the last are full
}

func (p *pages[T]) length() int {
	if len(p.list) == 0 {
		return 0
	}
	last := len(p.list) - 1
	return last*pageLength + len(p.list[last])
}

func (p *pages[T]) at(i int) *T { return &p.list[i/pageLength][i%pageLength] }

func (p *pages[T]) push(value T) {
	last := len(p.list) - 1
	switch {
	case last < 0:
		p.list = append(p.list, nil) // short lists take little
		last++
	case len(p.list[last]) == pageLength:
		p.list = append(p.list, make([]T, 0, pageLength))
		last++
	}
	p.list[last] = append(p.list[last], value)
}

// pop drops the last value.
func (p *pages[T]) pop() {
	last := len(p.list) - 1
	page := p.list[last]
	clear(page[len(page)-1:])
	if p.list[last] = page[:len(page)-1]; len(page) == 1 {
		p.list[last] = nil
		p.list = p.list[:last]
	}
}
