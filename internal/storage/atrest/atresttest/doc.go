// Package atresttest makes rings of keys for tests (package atrest), wrapped by a provider that hides nothing. Nothing of the
// product may import it.
package atresttest
