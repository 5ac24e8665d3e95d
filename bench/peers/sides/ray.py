import sys

# This script has the library's name.
sys.path.append(sys.path.pop(0))
import ray
from side import serve


def main():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

    @ray.remote
    def value():
        return 42

    # A process of its own for each call.
    @ray.remote(max_calls=1)
    def alone():
        return None

    @ray.remote
    def following(item):
        return item + 1

    @ray.remote
    def all_following(items):
        return [item + 1 for item in items]

    def one(count):
        for _ in range(count):
            assert ray.get(value.remote()) == 42

    def tasks(count):
        ray.get([alone.remote() for _ in range(count)])

    def each(count):
        found = ray.get([following.remote(item) for item in range(count)])
        assert found[-1] == count

    def chunks(count):
        size = -(-count // 64)
        found = ray.get(
            [all_following.remote(range(start, min(count, start + size))) for start in range(0, count, size)]
        )
        assert sum(map(len, found)) == count

    each(100)
    serve({"one": one, "tasks": tasks, "map": each, "chunks": chunks})
    ray.shutdown()


if __name__ == "__main__":
    main()
