// Package changes draws changes of a configuration: what operators ask for, likely and unlikely, sensible and not.
//
// It knows no hosts: whom a change adds is started by the caller. A Drawer belongs to the goroutine of its world.
package changes
