package main

import (
	"reflect"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// staticFactory makes informers of fixed objects. They need no goroutines: a handler gets all objects when it is added.
type staticFactory struct {
	informers.SharedInformerFactory
	client    kubernetes.Interface
	objects   map[reflect.Type][]runtime.Object
	informers map[reflect.Type]*staticInformer
}

func newStaticFactory(client kubernetes.Interface, objects []runtime.Object) *staticFactory {
	factory := &staticFactory{
		SharedInformerFactory: informers.NewSharedInformerFactory(client, 0),
		client:                client,
		objects:               map[reflect.Type][]runtime.Object{},
		informers:             map[reflect.Type]*staticInformer{},
	}
	for _, object := range objects {
		kind := reflect.TypeOf(object)
		factory.objects[kind] = append(factory.objects[kind], object)
	}
	return factory
}

func (f *staticFactory) InformerFor(object runtime.Object, newInformer internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	kind := reflect.TypeOf(object)
	if informer, ok := f.informers[kind]; ok {
		return informer
	}
	informer := &staticInformer{newInformer(f.client, 0)}
	f.informers[kind] = informer
	for _, object := range f.objects[kind] {
		if err := informer.GetIndexer().Add(object); err != nil {
			fail(err)
		}
	}
	return informer
}

func (f *staticFactory) Apps() apps.Interface             { return apps.New(f, "", nil) }
func (f *staticFactory) Core() core.Interface             { return core.New(f, "", nil) }
func (f *staticFactory) Policy() policy.Interface         { return policy.New(f, "", nil) }
func (f *staticFactory) Resource() resource.Interface     { return resource.New(f, "", nil) }
func (f *staticFactory) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }
func (f *staticFactory) Storage() storage.Interface       { return storage.New(f, "", nil) }

// staticInformer is an informer that never starts.
type staticInformer struct {
	cache.SharedIndexInformer
}

func (i *staticInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range i.GetIndexer().List() {
		handler.OnAdd(object, true)
	}
	return synced{}, nil
}

func (i *staticInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *staticInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *staticInformer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (i *staticInformer) HasSynced() bool                                                 { return true }
func (i *staticInformer) HasSyncedChecker() cache.DoneChecker                             { return synced{} }
func (i *staticInformer) GetStore() cache.Store                                           { return i.GetIndexer() }

func (i *staticInformer) GetIndexer() cache.Indexer {
	return sortedIndexer{i.SharedIndexInformer.GetIndexer()}
}

// sortedIndexer lists objects in order of their keys, so that answers do not depend on the order of a map.
type sortedIndexer struct {
	cache.Indexer
}

func (s sortedIndexer) List() []interface{} {
	keys := s.ListKeys()
	sort.Strings(keys)
	objects := make([]interface{}, 0, len(keys))
	for _, key := range keys {
		if object, exists, err := s.GetByKey(key); err == nil && exists {
			objects = append(objects, object)
		}
	}
	return objects
}

// synced is the registration of a handler that has all objects.
type synced struct{}

var closedChannel = func() chan struct{} {
	channel := make(chan struct{})
	close(channel)
	return channel
}()

func (synced) HasSynced() bool                       { return true }
func (s synced) HasSyncedChecker() cache.DoneChecker { return s }
func (synced) Name() string                          { return "static informer" }
func (synced) Done() <-chan struct{}                 { return closedChannel }
