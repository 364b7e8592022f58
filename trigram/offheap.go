package trigram

import (
	"fmt"
	"syscall"
	"unsafe"
)

// allocOffHeap allocates n zeroed values of T outside of the Go heap. Memory costs only where it is
// touched, and the garbage collector does not see it. T must contain no pointers.
func allocOffHeap[T any](n int) ([]T, error) {
	var t T
	size := n * int(unsafe.Sizeof(t))
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for a trigram writer, %d bytes: %w", size, err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
}

// freeOffHeap frees what allocOffHeap allocated.
func freeOffHeap[T any](s []T) {
	if cap(s) == 0 {
		return
	}
	s = s[:cap(s)]
	var t T
	b := unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(t)))
	_ = syscall.Munmap(b)
}
