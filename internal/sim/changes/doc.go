// Package changes draws changes of a configuration that operators request, likely and unlikely, sensible and not.
//
// It knows no hosts: the caller starts the members that a change adds. A Drawer belongs to the goroutine of its world.
package changes
