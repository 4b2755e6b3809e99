// A coroutine that gives one value. It starts when awaited and resumes whoever awaits it. Multi-step
// procedures of the driver are such coroutines: free functions whose parameters are taken by value (a frame
// outlives its caller's scope), on the I/O thread. They always run to their end: a closed device answers
// every request at once.
#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

namespace busbar::devices::redfish {

template <class T>
class [[nodiscard]] task {
 public:
  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> waiting;

    task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct resume_waiting {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
        return ended.promise().waiting;
      }
      void await_resume() noexcept {}
    };
    resume_waiting final_suspend() noexcept { return {}; }
    template <class U>
    void return_value(U&& result) {
      value.emplace(std::forward<U>(result));
    }
    void unhandled_exception() { std::terminate(); }
  };

  task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  task& operator=(task&&) = delete;
  ~task() {
    if (frame_) frame_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) noexcept {
    frame_.promise().waiting = waiting;
    return frame_;
  }
  T await_resume() { return std::move(*frame_.promise().value); }

 private:
  explicit task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

// A coroutine nobody awaits.
struct detached {
  struct promise_type {
    detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() { std::terminate(); }
  };
};

// Runs work now and gives its result to then.
template <class T>
detached start(task<T> work, std::function<void(T)> then) {
  T result = co_await work;
  then(std::move(result));
}

// Awaits a function that calls back once: the callback may come inline or later.
template <class T>
class callback_of {
 public:
  using starter = std::function<void(std::function<void(T)>)>;
  explicit callback_of(starter begin) : begin_(std::move(begin)) {}

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting) {
    // Inline answers must not resume a coroutine that has not suspended yet: they are noted, and it goes on
    // at once.
    bool inside = true;
    bool* const inside_flag = &inside;
    begin_([this, waiting, inside_flag](T result) {
      const bool is_inline = !value_.has_value() && suspending_;
      value_.emplace(std::move(result));
      if (is_inline) {
        *inside_flag = false;
        return;
      }
      waiting.resume();
    });
    suspending_ = false;
    return inside;
  }
  T await_resume() { return std::move(*value_); }

 private:
  starter begin_;
  bool suspending_ = true;
  std::optional<T> value_;
};

}  // namespace busbar::devices::redfish
